package translated

import (
	"log/slog"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// sink keeps the problems that were told.
type sink struct{ told [][]config.Problem }

func (*sink) Update(config.Update) {}

func (s *sink) Trouble(problems []config.Problem) { s.told = append(s.told, problems) }

// TestG14SharedHostCostsOnce: a unit that is translated again with the same hosts changes no
// problem, though another cluster has them too, so the problems are not put together again.
func TestG14SharedHostCostsOnce(t *testing.T) {
	s := New(Words{Shared: "%q%s"}, func(key string) string { return key })
	host := func(cluster federation.ClusterID, hosts ...string) func(string, *Unit) bool {
		return func(_ string, u *Unit) bool {
			u.Cluster, u.Hosts = cluster, hosts
			return true
		}
	}
	to := &sink{}
	for _, step := range []struct {
		name   string
		unit   string
		by     func(string, *Unit) bool
		worse  bool
		shared int // problems
	}{
		{"one cluster", "a", host("c1", "a.example"), false, 0},
		{"a second one", "b", host("c2", "a.example"), true, 1},
		{"the same again", "b", host("c2", "a.example"), false, 1},
		{"one more host", "b", host("c2", "a.example", "b.example"), true, 1},
		{"another cluster", "b", host("c1", "a.example"), true, 0},
		{"shared again", "b", host("c2", "a.example"), true, 1},
		{"none any more", "b", func(string, *Unit) bool { return false }, true, 0},
	} {
		s.Update([]string{step.unit}, step.by)
		if s.worse != step.worse {
			t.Errorf("%s: the problems may have changed: %v", step.name, s.worse)
		}
		s.Complain(to, nil, slog.New(slog.DiscardHandler))
		if n := len(to.told[len(to.told)-1]); n != step.shared {
			t.Errorf("%s: %d problems, want %d", step.name, n, step.shared)
		}
	}
}
