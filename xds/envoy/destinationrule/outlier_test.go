package destinationrule

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// TestK69ZeroFailuresToConnectMeanTheDefault: of the three counts, 0 turns off two. That of failures to connect has its
// default then, as in Istio.
func TestK69ZeroFailuresToConnectMeanTheDefault(t *testing.T) {
	for name, c := range map[string]struct {
		detection string
		want      uint32 // how many of 100 are ejected
		failures  uint32
	}{
		"none said": {`{"splitExternalLocalOriginErrors": true}`, 100, 5},
		"zero":      {`{"splitExternalLocalOriginErrors": true, "consecutiveLocalOriginFailures": 0}`, 100, 5},
		"three":     {`{"splitExternalLocalOriginErrors": true, "consecutiveLocalOriginFailures": 3}`, 100, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv3.Cluster{}
			SetOutlierDetection(cluster, policyFrom(t, `{"outlierDetection": `+c.detection+`}`).GetOutlierDetection())
			d := cluster.GetOutlierDetection()
			ejected, failures := uint32(100), uint32(5) // Envoy's defaults
			if d.GetEnforcingConsecutiveLocalOriginFailure() != nil {
				ejected = d.GetEnforcingConsecutiveLocalOriginFailure().GetValue()
			}
			if d.GetConsecutiveLocalOriginFailure() != nil {
				failures = d.GetConsecutiveLocalOriginFailure().GetValue()
			}
			if ejected != c.want || failures != c.failures {
				t.Errorf("%d %% are ejected after %d failures, want %d %% after %d", ejected, failures, c.want, c.failures)
			}
		})
	}
}
