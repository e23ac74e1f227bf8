package drainclock

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a hub with one Drain at most; its clock may be wrong.
type rig struct {
	mesh    *federation.Aggregate
	objects *federation.Writer
	log     bytes.Buffer
	mu      sync.Mutex
	wrong   time.Duration
}

func start(t *testing.T) *rig {
	r := &rig{mesh: federation.NewAggregate(nil)}
	r.objects = r.mesh.Open(federation.ShardKey{Provider: federation.External})
	keeper := New(Options{
		Snapshots: r.mesh, To: r.mesh.Open(federation.ShardKey{Provider: "Clock"}), Now: r.now,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = keeper.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.wrong)
}

func (r *rig) jump(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong += by
}

var key = federation.ObjectKey{Group: federation.MeshGroup, Kind: "Drain", Name: "c2"}

// drain has the Drain be with that ramp and percent, created now; no ramp: it is deleted.
func (r *rig) drain(ramp string, percent uint32) {
	e := federation.Edit{}
	if ramp == "" {
		e.Objects.Gone = []federation.ObjectKey{key}
	} else {
		spec := &federation.DrainObject{Cluster: "c2", Ramp: ramp, Percent: &percent}
		e.Objects.Set = map[federation.ObjectKey]*federation.Object{key: {
			Key: key, Digest: fmt.Sprint(ramp, percent, time.Now()),
			Created: time.Now(), Spec: spec,
		}}
	}
	r.objects.Update(e)
	synctest.Wait()
}

// percent is what the Drain takes away after that time.
func (r *rig) percent(after time.Duration) uint32 {
	timer := time.NewTimer(after)
	<-timer.C
	synctest.Wait()
	s := r.mesh.Latest()
	o, ok := s.Object(key)
	if !ok {
		return 0
	}
	return federation.RampOf(o).At(federation.ClockOf(s))
}

// messages are those of the log.
func (r *rig) messages() (all []string) {
	for line := range strings.Lines(r.log.String()) {
		_, rest, _ := strings.Cut(line, "msg=")
		all = append(all, strings.ReplaceAll(strings.TrimSpace(rest), `"`, ""))
	}
	return all
}

// TestG58TheHubTakesTheSteps of a ramp at their times, with nothing else happening, and logs them.
func TestG58TheHubTakesTheSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.drain("20m", 40)
		for minute := range 25 {
			want := uint32(min(minute+1, 20) * 2)
			if got := r.percent(0); got != want {
				t.Errorf("after %d min: %d, want %d", minute, got, want)
			}
			r.percent(time.Minute)
		}
		r.drain("", 0)
		all := r.messages()
		first, last := "drain started, its ramp goes on object=Drain c2 percent=2 target=40",
			"drain reached its target object=Drain c2 percent=40 target=40"
		if len(all) != 21 || all[0] != first || all[1] != "drain took a step object=Drain c2 percent=4 target=40" || all[19] != last ||
			all[20] != "drain ended object=Drain c2" {
			t.Errorf("the log has %d lines:\n%s", len(all), strings.Join(all, "\n"))
		}
	})
}

// TestG58AChangedDrain: a lower percent is on its own line from the same start, and a Drain
// that is made again begins again.
func TestG58AChangedDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.drain("10m", 100)
		created := time.Now()
		half := r.percent(5 * time.Minute)
		lower, percent := &federation.DrainObject{Cluster: "c2", Ramp: "10m"}, uint32(40)
		lower.Percent = &percent
		r.objects.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{
			Set: map[federation.ObjectKey]*federation.Object{key: {Key: key, Digest: "lower", Created: created, Spec: lower}},
		}})
		lowered, end := r.percent(0), r.percent(5*time.Minute)
		r.drain("", 0)
		gone := r.percent(0)
		r.drain("10m", 100)
		if again := r.percent(0); half != 55 || lowered != 22 || end != 40 || gone != 0 || again != 5 {
			t.Errorf("half %d, lowered %d, at the end %d, deleted %d, again %d", half, lowered, end, gone, again)
		}
	})
}

// TestG58AClockThatJumps: forward, the hub is where the others are, after a minute at most;
// back, nothing is given back, and the ramp goes on where it was.
func TestG58AClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.drain("100m", 100)
		r.jump(50 * time.Minute)
		forward := r.percent(time.Minute)
		r.jump(-40 * time.Minute)
		back, later, after := r.percent(time.Minute), r.percent(30*time.Minute), r.percent(20*time.Minute)
		if forward != 55 || back != 55 || later != 55 || after != 65 {
			t.Errorf("forward %d, back %d, 30 min later %d, 20 min after that %d", forward, back, later, after)
		}
	})
}

// TestG58AHubThatComesLate has the share of the others at once: from the first snapshot with
// the Drain on.
func TestG58AHubThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		created := time.Now()
		<-time.NewTimer(10 * time.Minute).C
		o := &federation.Object{Key: key, Created: created, Spec: &federation.DrainObject{Cluster: "c2", Ramp: "20m"}}
		mesh.Open(federation.ShardKey{Provider: federation.External}).Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{
			Full: true, Set: map[federation.ObjectKey]*federation.Object{key: o},
		}})
		if got := federation.RampOf(o).At(federation.ClockOf(mesh.Latest())); got != 55 {
			t.Errorf("the first snapshot has %d", got)
		}
	})
}
