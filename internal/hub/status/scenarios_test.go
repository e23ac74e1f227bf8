package status_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
)

// TestScenarios compares the status of configuration objects while the proxies of the
// scenario are connected and accept everything.
func TestScenarios(t *testing.T) {
	compared := 0
	for _, file := range federationtest.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if s := federationtest.Load(t, file); s.Wants("want/status.txt") {
					compared++
					compareStatus(t, s)
				}
			})
		})
	}
	if compared == 0 {
		t.Error("no scenario wants a status")
	}
}

func compareStatus(t *testing.T, s *federationtest.Scenario) {
	hub := statustest.Serve(t, s)
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
