package mesh

import (
	"log/slog"

	"isthmus.dev/isthmus/federation"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/metrics"
)

// countUnenforced shows how many policies are stored that nothing enforces, and
// returns the number.
func countUnenforced(s *federation.Snapshot, to *metrics.Config) int {
	all := 0
	for _, kind := range configkind.All() {
		if !kind.Restricts() {
			continue
		}
		n := 0
		for o := range s.Objects().Of(kind.Kind) {
			if configkind.Unenforced(o) != "" {
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
