package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drainOf is a Drain with what the change says.
func drainOf(name string, change func(*DrainObject)) *Object {
	spec := &DrainObject{}
	change(spec)
	return &Object{Key: ObjectKey{Group: MeshGroup, Kind: "Drain", Name: name}, Digest: fmt.Sprintf("%+v %d", *spec, spec.Share()), Spec: spec}
}

func share(percent uint32) *uint32 { return &percent }

// drawDrain draws a change of Drains.
func drawDrain(t *rapid.T, to *Delta[ObjectKey, *Object]) {
	o := drainOf(rapid.SampledFrom([]string{"d", "e"}).Draw(t, "drain"), func(d *DrainObject) {
		d.Percent = share(uint32(rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "percent")))
		d.Force = rapid.Bool().Draw(t, "force")
		if rapid.Bool().Draw(t, "ramps") {
			d.Ramp, d.RampFrom, d.RampStart = "20m", uint32(rapid.SampledFrom([]int{0, 60}).Draw(t, "from")), drawTime(t)
		}
		d.NetworkID = drawNetworkID(t)
		if rapid.Bool().Draw(t, "ofCluster") {
			d.NetworkID, d.Cluster = "", rapid.SampledFrom([]ClusterID{"c1", "c2"}).Draw(t, "drained")
		}
	})
	switch rapid.IntRange(0, 3).Draw(t, "drains") {
	case 0:
		if to.Set == nil {
			to.Set = map[ObjectKey]*Object{}
		}
		to.Set[o.Key] = o
	case 1:
		to.Gone = append(to.Gone, o.Key)
	}
}

// drawTime draws a time, of few.
func drawTime(t *rapid.T) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
}

// weightsOf tells the weight and the health of each endpoint, and which drains are refused.
func weightsOf(s *Snapshot) string {
	svc, _ := s.Service(key("web", "ns"))
	var parts []string
	for _, group := range svc.Endpoints {
		for _, e := range group.Endpoints {
			parts = append(parts, fmt.Sprintf("%s=%d%s", e.Address, e.LoadBalancingWeight(), strings.TrimPrefix(string(e.Health), string(Healthy))))
		}
	}
	for _, d := range svc.Drains {
		if d.Refused != "" {
			parts = append(parts, d.Drain.Name+" refused")
		}
	}
	return strings.Join(parts, " ")
}

// TestN06DrainsTakeRequestsAway: an endpoint that is drained gets less, or nothing while others
// are left, and all of it again when the Drain ends.
func TestN06DrainsTakeRequestsAway(t *testing.T) {
	west, sick := endpoint("10.2.0.1", 80), endpoint("10.3.0.1", 80)
	west.Locality, west.Network, west.Weight = Locality{Region: "west", Zone: "a"}, "n2", 3
	sick.Health = Unhealthy
	base := after(
		reports("c1", "web", web("", endpoint("10.1.0.1", 80))), reports("c2", "web", web("", west)), reports("c3", "web", web("", sick)))
	plain := "10.1.0.1=1 10.2.0.1=3 10.3.0.1=1UNHEALTHY"
	for _, c := range []struct {
		what   string
		drains []*Object
		want   string
	}{
		{"none", nil, plain},
		{"a cluster", []*Object{drainOf("a", func(d *DrainObject) { d.Cluster = "c2" })}, "10.1.0.1=1 10.2.0.1=3DRAINING 10.3.0.1=1UNHEALTHY"},
		{"a network", []*Object{drainOf("a", func(d *DrainObject) { d.NetworkID = "n2" })}, "10.1.0.1=1 10.2.0.1=3DRAINING 10.3.0.1=1UNHEALTHY"},
		{"a region", []*Object{drainOf("a", func(d *DrainObject) { d.Locality = "west" })}, "10.1.0.1=1 10.2.0.1=3DRAINING 10.3.0.1=1UNHEALTHY"},
		{"another zone", []*Object{drainOf("a", func(d *DrainObject) { d.Locality = "west/b" })}, plain},
		{
			"a part",
			[]*Object{drainOf("a", func(d *DrainObject) { d.Cluster, d.Percent = "c2", share(60) })},
			"10.1.0.1=100 10.2.0.1=120 10.3.0.1=100UNHEALTHY",
		},
		{"nothing of it", []*Object{drainOf("a", func(d *DrainObject) { d.Cluster, d.Percent = "c2", share(0) })}, plain},
		{"two: the larger share counts", []*Object{
			drainOf("a", func(d *DrainObject) { d.Cluster, d.Percent = "c2", share(10) }),
			drainOf("b", func(d *DrainObject) { d.NetworkID, d.Percent = "n2", share(50) }),
		}, "10.1.0.1=100 10.2.0.1=150 10.3.0.1=100UNHEALTHY"},
	} {
		drained, _ := Next(base, objectsEdit(c.drains...))
		if got := weightsOf(drained); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		e := Edit{Source: ShardKey{Provider: Operator}, Objects: Delta[ObjectKey, *Object]{Full: true}}
		if restored, _ := Next(drained, e); weightsOf(restored) != plain {
			t.Errorf("%s: without the drains there is %s", c.what, weightsOf(restored))
		}
	}
}

// TestN07DrainsLeaveEnough: a service of which too little would be left is not drained, unless
// that is forced.
func TestN07DrainsLeaveEnough(t *testing.T) {
	base := after(
		reports("c1", "web", web("", endpoint("10.1.0.1", 80))),
		reports("c2", "web", web("", endpoint("10.2.0.1", 80), endpoint("10.2.0.2", 80))))
	plain, drained := "10.1.0.1=1 10.2.0.1=1 10.2.0.2=1", "10.1.0.1=1 10.2.0.1=1DRAINING 10.2.0.2=1DRAINING"
	for _, c := range []struct {
		what   string
		change func(*DrainObject)
		want   string
	}{
		{"one is left", func(*DrainObject) {}, drained},
		{"two must be", func(d *DrainObject) { d.MinRemaining = 2 }, plain + " a refused"},
		{"a third is left", func(d *DrainObject) { d.MinRemainingPercent = 33 }, drained},
		{"a half must be", func(d *DrainObject) { d.MinRemainingPercent = 50 }, plain + " a refused"},
		{"it is forced", func(d *DrainObject) { d.MinRemaining, d.Force = 2, true }, drained},
		{"all of them", func(d *DrainObject) { d.Cluster, d.NetworkID = "", DefaultNetwork }, plain + " a refused"},
		{
			"all of them, forced", func(d *DrainObject) { d.Cluster, d.NetworkID, d.Force = "", DefaultNetwork, true },
			"10.1.0.1=1DRAINING 10.2.0.1=1DRAINING 10.2.0.2=1DRAINING",
		},
	} {
		o := drainOf("a", func(d *DrainObject) { d.Cluster = "c2"; c.change(d) })
		s, _ := Next(base, objectsEdit(o))
		if got := weightsOf(s); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
