package status

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/federation/fleet"
)

// changed are the reasons that changed.
type changed struct{ objects []federation.ObjectKey }

func (c *changed) since() ([]federation.ObjectKey, []federation.ServiceKey) {
	defer func() { c.objects = nil }()
	return c.objects, nil
}

// TestG61NewsNameWhatChanged: of a reason and an acknowledgement the objects are news
// that they are about; of a refusal, all.
func TestG61NewsNameWhatChanged(t *testing.T) {
	proxies, reasons := fleet.New(), &changed{}
	w := Written{Objects: &Objects{Hub: "hub", Proxies: noReasons{}}, Fleet: proxies, Reasons: reasons.since, last: &lastNews{}}
	news := func() wanted.News { return w.News() }
	news()
	reasons.objects = []federation.ObjectKey{objectOf(2)}
	if n := news(); !slices.Equal(n.Objects, []federation.ObjectKey{objectOf(2)}) || n.All || n.Moved {
		t.Errorf("after another reason the news are %+v", n)
	}
	const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	stream := proxies.Connect(fleet.Proxy{NodeID: "a"})
	deliver := func(open ...fleet.OpenResource) {
		stream.Deliver(1, map[string]*fleet.Delivery{clusterType: {Groups: []fleet.Group{1}, Open: open}})
	}
	deliver(fleet.OpenResource{Number: 1, State: fleet.Delivered})
	news()
	deliver()
	if n := news(); !n.Moved || n.All {
		t.Errorf("after an acknowledgement the news are %+v", n)
	}
	deliver(fleet.OpenResource{Number: 1, State: fleet.Accepted, Refused: true})
	if n := news(); !n.All {
		t.Errorf("after a refusal the news are %+v", n)
	}
	if n := news(); n.All || n.Moved || len(n.Objects) > 0 {
		t.Errorf("without a change the news are %+v", n)
	}
	stream.Close()
	if n := news(); !n.All || !n.Moved {
		t.Errorf("after a proxy that refused went the news are %+v", n)
	}
}
