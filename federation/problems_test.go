package federation

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPropertyProblemsAreFoundByObject: after any history, the problems with an object are those of its
// cluster that name it, and the changes name the objects of which that is different than before.
func TestPropertyProblemsAreFoundByObject(t *testing.T) {
	objects := []string{"", "Rule r", "Rule r\x00", "Rule r\x00c1", "Rule r1", "\x00"}
	sources := []ShardKey{shardOf("c1"), {Cluster: "c1", Provider: External}, shardOf("c2")}
	rapid.Check(t, func(t *rapid.T) {
		s, _ := Next(Empty(), Edit{Source: sources[0], Status: &RegistryStatus{Phase: Ready}})
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			delta := Delta[string, Problem]{Full: rapid.IntRange(0, 4).Draw(t, "full") == 0, Set: map[string]Problem{}}
			for range rapid.IntRange(0, 3).Draw(t, "problems") {
				delta.Set[fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "name"))] = Problem{
					Object: rapid.SampledFrom(objects).Draw(t, "object"), Code: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "code"),
				}
			}
			before := s
			var changes ChangeSet
			s, changes = Next(s, Edit{Source: rapid.SampledFrom(sources).Draw(t, "source"), Problems: delta})
			for _, id := range []ClusterID{"c1", "c2"} {
				for _, object := range objects {
					of := ProblemSubject{id, object}
					found := ReadProblems(s.Read(), of)
					want := slices.DeleteFunc(slices.Collect(s.Problems(id)), func(p Problem) bool { return p.Object != object })
					if !slices.Equal(found, want) {
						t.Fatalf("%q has the problems %v, want %v", of, found, want)
					}
					if differs := !slices.Equal(ReadProblems(before.Read(), of), found); differs && !slices.Contains(changes.Problems, of) {
						t.Fatalf("%q is not among the changes %q", of, changes.Problems)
					}
				}
			}
		}
	})
}
