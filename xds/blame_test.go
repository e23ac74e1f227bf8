package xds

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestAcksDoNotWaitForCauses: while a group builds a resource again and again to find what a
// refused part is made of, other clients accept what they were sent; what was found is kept.
func TestAcksDoNotWaitForCauses(t *testing.T) {
	a := federation.NewAggregate(nil)
	a.Open(source1).Update(federation.Edit{Services: service("a", 1)})
	made := envoyBuilder
	asked, answer, builds := make(chan struct{}), make(chan struct{}), 0
	made.causes = func(envoy.Type, string, envoy.Facet, *federation.Reader, []string) map[string][]federation.ObjectKey {
		builds++
		asked <- struct{}{}
		<-answer
		return map[string][]federation.ObjectKey{"part": {{Name: "bad"}}}
	}
	g := newGroup(envoy.EndpointType, everyones(envoy.EndpointType), made)
	g.sync(a.Latest())
	found := make(chan map[string][]federation.ObjectKey)
	for range 2 {
		go func() { found <- g.causes(cluster("a"), []string{"part"}) }()
	}
	<-asked
	accepted := g.get(cluster("a"))
	g.blame.noteAccepted([]*resource{accepted})
	if got := g.accepted(cluster("a")); got != accepted {
		t.Errorf("%v is what was accepted last, want %v", got, accepted)
	}
	close(answer)
	for range 2 {
		if got := (<-found)["part"]; len(got) != 1 || got[0].Name != "bad" {
			t.Errorf("the causes are %v", got)
		}
	}
	if builds != 1 {
		t.Errorf("the causes were found %d times", builds)
	}
}
