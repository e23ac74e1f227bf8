package settings

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestR06LimitsOfClusters are read from the file: a cluster's own, else those of
// all, else the defaults.
func TestR06LimitsOfClusters(t *testing.T) {
	c,
		err := parseConfig("f",
		[]byte("clusterLimits: {objects: 7, bytes: 64Mi}\nclusters:\n- {id: a, provider: Mock, limits: {objects: 9, pages: 3}}\n- {id: b, provider: Mock}\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.ClusterLimits.Read("clusterLimits")
	if err != nil {
		t.Fatal(err)
	}
	usual := federation.Limits{}.WithDefaults()
	if got, want := c.Clusters[0].LimitsOr(all), (federation.Limits{Objects: 9, Pages: 3, Bytes: 64 << 20}); got != want {
		t.Errorf("a has %+v, want %+v", got, want)
	}
	if got, want := c.Clusters[1].LimitsOr(all), (federation.Limits{Objects: 7, Pages: usual.Pages, Bytes: 64 << 20}); got != want {
		t.Errorf("b has %+v, want %+v", got, want)
	}
	for text, part := range map[string]string{
		"clusterLimits: {objects: -1}": "clusterLimits.objects: -1", "clusterLimits: {bytes: much}": `clusterLimits.bytes: "much"`,
		"clusters: [{id: a, provider: Mock, limits: {pages: -2}}]": "clusters[0].limits.pages: -2",
	} {
		if _, err := parseConfig("f", []byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
}
