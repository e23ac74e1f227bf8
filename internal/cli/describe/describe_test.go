package describe

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/client"
)

// TestU91RefusalsSayHowManyMoreThereAre: a page has the first of them alone.
func TestU91RefusalsSayHowManyMoreThereAre(t *testing.T) {
	words, rejected := "port 0", 51
	of := client.ObjectDetailStatus{Rejected: &rejected}
	of.Proxies.Nodes = []client.ProxyProgress{{NodeID: "p9", Error: &words}}
	if got, want := refusals(of), []string{"p9: port 0", "and 50 more"}; !slices.Equal(got, want) {
		t.Errorf("describe says %q, want %q", got, want)
	}
	rejected = 1
	if got, want := refusals(of), []string{"p9: port 0"}; !slices.Equal(got, want) {
		t.Errorf("describe says %q, want %q", got, want)
	}
}
