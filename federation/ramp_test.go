package federation

import (
	"fmt"
	"testing"
	"time"
)

// TestG57ARampMovesInSteps from where it begins to the percent of the Drain, of stored times alone.
func TestG57ARampMovesInSteps(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }
	for _, c := range []struct {
		what   string
		change func(*DrainObject)
		when   time.Time
		want   uint32
	}{
		{"no ramp", func(d *DrainObject) { d.Ramp, d.RampFrom = "", 50 }, at(0), 100},
		{"the first step is at once", func(*DrainObject) {}, at(0), 5},
		{"nothing between two steps", func(*DrainObject) {}, at(0.9), 5},
		{"the second", func(*DrainObject) {}, at(1), 10},
		{"in the middle", func(*DrainObject) {}, at(10), 55},
		{"the last", func(*DrainObject) {}, at(19), 100},
		{"long after", func(*DrainObject) {}, at(1e6), 100},
		{"before the object was made, by another hub's clock", func(*DrainObject) {}, at(-5), 0},
		{"time is unknown", func(*DrainObject) {}, time.Time{}, 0},
		{"to a lower percent", func(d *DrainObject) { d.Percent = share(40) }, at(10), 22},
		{"from a share", func(d *DrainObject) { d.RampFrom = 40 }, at(10), 73},
		{"down", func(d *DrainObject) { d.Percent, d.RampFrom = share(0), 100 }, at(10), 45},
		{"down, at the end", func(d *DrainObject) { d.Percent, d.RampFrom = share(0), 100 }, at(20), 0},
		{"from a start that comes", func(d *DrainObject) { d.RampStart = at(30) }, at(29), 0},
		{"from a start that was", func(d *DrainObject) { d.RampStart = at(-30) }, at(0), 100},
		{"nothing that can be read", func(d *DrainObject) { d.Ramp = "soon" }, at(0), 100},
		{"shorter than can be", func(d *DrainObject) { d.Ramp = "1ns" }, at(0), 5},
	} {
		o := drainOf("a", func(d *DrainObject) { d.Ramp = "20m"; c.change(d) })
		o.Created = start
		if got := RampOf(o).At(c.when); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	if nobody := (&Object{Spec: &DrainObject{Ramp: "20m"}}); RampOf(nobody).At(start) != 100 {
		t.Error("a ramp without a start has not ended")
	}
}

// TestG57TheShareFollowsTheClock of the snapshot, which never goes back, and the Drain is
// refused from its start where too little is left.
func TestG57TheShareFollowsTheClock(t *testing.T) {
	start := time.Unix(1000, 0)
	base := after(
		reports("c1", "web", web("", endpoint("10.1.0.1", 80))), reports("c2", "web", web("", endpoint("10.2.0.1", 80))))
	rising := drainOf("a", func(d *DrainObject) { d.Cluster, d.Ramp = "c2", "20m" })
	falling := drainOf("a", func(d *DrainObject) {
		d.Cluster, d.Ramp = "c2", "20m"
		d.Percent, d.RampFrom = share(0), 100
	})
	for _, c := range []struct {
		what    string
		drain   *Object
		minutes []int
		want    string
	}{
		{"not begun", rising, []int{-1}, "10.1.0.1=1 10.2.0.1=1"},
		{"begun", rising, []int{0}, "10.1.0.1=100 10.2.0.1=95"},
		{"half of it", rising, []int{0, 9}, "10.1.0.1=100 10.2.0.1=50"},
		{"a clock that goes back", rising, []int{9, -20, 3}, "10.1.0.1=100 10.2.0.1=50"},
		{"a clock that jumps", rising, []int{0, 60}, "10.1.0.1=1 10.2.0.1=1DRAINING"},
		{"falling", falling, []int{0}, "10.1.0.1=100 10.2.0.1=5"},
		{"fallen", falling, []int{0, 19}, "10.1.0.1=1 10.2.0.1=1"},
	} {
		c.drain.Created = start
		s, _ := Next(base, objectsEdit(c.drain))
		for _, m := range c.minutes {
			s, _ = Next(s, Edit{Clock: start.Add(time.Duration(m) * time.Minute)})
		}
		if got := weightsOf(s); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	alone := drainOf("a", func(d *DrainObject) { d.NetworkID, d.Ramp = DefaultNetwork, "20m" })
	alone.Created = start
	s, _ := Next(base, objectsEdit(alone))
	if got := weightsOf(s); got != "10.1.0.1=1 10.2.0.1=1 a refused" {
		t.Errorf("before its start, a Drain of everything: %s", got)
	}
}

// TestG57ATickCostsWhatIsDrained: services without drained endpoints are not merged again.
func TestG57ATickCostsWhatIsDrained(t *testing.T) {
	start := time.Unix(1000, 0)
	base := after(
		reports("c1", "web", web("", endpoint("10.1.0.1", 80))), reports("c2", "web", web("", endpoint("10.2.0.1", 80))),
		reports("c1", "other", web("", endpoint("10.1.0.2", 80))))
	o := drainOf("a", func(d *DrainObject) { d.Cluster, d.Ramp = "c2", "20m" })
	o.Created = start
	s, _ := Next(base, objectsEdit(o))
	next, changes := Next(s, Edit{Clock: start})
	if got := fmt.Sprint(changes.Services); got != "[ns/web]" && len(changes.Services) != 1 {
		t.Errorf("the first step changes %s", got)
	}
	if _, none := Next(next, Edit{Clock: start.Add(time.Second)}); len(none.Services) != 0 {
		t.Errorf("a second without a step changes %v", none.Services)
	}
	want := DrainProgress{Percent: 5, Services: 1, Endpoints: 1}
	if got := DrainsIn(next)[o.Key]; got != want {
		t.Errorf("the Drain does %+v, want %+v", got, want)
	}
}
