package status_test

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
)

// TestScenarios compares the status of configuration objects while the proxies of the
// scenario are connected and accept everything.
func TestScenarios(t *testing.T) {
	statustest.Each(t, "want/status.txt", compareStatus)
}

func compareStatus(t *testing.T, s *federationtest.Scenario, hub statustest.Hub) {
	for more := true; more; more = s.Next(t) {
		statustest.Settle()
		var b strings.Builder
		for o := range s.Config.Objects() {
			for _, f := range hub.Objects.Findings(s.Snapshot(), hub.Fleet.Latest(), o.Key) {
				at := ""
				if f.Field != "" {
					at = f.Field + ": "
				}
				fmt.Fprintf(&b, "%s: %s %s%s\n", o.Key.Title(), f.Code, at, f.Message)
			}
			if decoded, ok := s.Snapshot().Object(o.Key); ok {
				for _, f := range hub.Objects.NotHonoured(s.Snapshot(), decoded) {
					fmt.Fprintf(&b, "%s: NOT_SUPPORTED %s: %s\n", o.Key.Title(), f.Field, f.Reason)
				}
			}
		}
		s.Compare(t, "want/status.txt", []byte(b.String()))
	}
}
