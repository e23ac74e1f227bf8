package hub

import (
	"log/slog"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/metrics"
)

// policyKinds are the kinds of which objects may restrict traffic by their own
// words and are not enforced.
var policyKinds = []federation.Kind{
	{Group: "security.istio.io", Name: "AuthorizationPolicy"},
	{Group: "security.istio.io", Name: "PeerAuthentication"},
	{Group: "security.istio.io", Name: "RequestAuthentication"},
}

// countUnenforced shows how many policies are stored that nothing enforces, and
// returns the number.
func countUnenforced(s *federation.Snapshot, to *metrics.Config) int {
	all := 0
	for _, kind := range policyKinds {
		n := 0
		for o := range s.ObjectsOf(kind) {
			if apply.Unenforced(o) != "" {
				n++
			}
		}
		to.Unenforced(kind.Name, n)
		all += n
	}
	return all
}

// warnUnenforced says at start that traffic is open that policies mean to
// restrict.
func warnUnenforced(objects int, log *slog.Logger) {
	if objects > 0 {
		log.Warn("stored security policies are not enforced: traffic that they mean to restrict is open", slog.Int("objects", objects))
	}
}
