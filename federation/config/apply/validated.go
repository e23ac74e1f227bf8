package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/parallel"
)

// codeQuarantined is of a stored object that does not pass validation.
const codeQuarantined = "QUARANTINED"

// maxRemembered bounds what is remembered of objects that were written here.
const maxRemembered = 100_000

// Validated is a source whose objects are validated when they are read, as those
// that come over the API are when they are written: somebody may have written
// past it (B-E6). One that does not pass is not given; its last valid one stays,
// and Trouble says so. What this process has written itself is not looked at
// again. Automatic VIPs and unknown kinds are given as they are: their reader says
// what it thinks of them.
type Validated struct {
	source config.Source
	schema *schema.Set
	log    *slog.Logger
	mu     sync.Mutex
	wrote  map[[sha256.Size]byte]bool
	given  map[federation.ObjectKey]*config.Object // by the run that is on, of the kinds that are validated
}

// NewValidated wraps a source.
func NewValidated(source config.Source, set *schema.Set, log *slog.Logger) *Validated {
	return &Validated{
		source: source, schema: set, log: log, wrote: map[[sha256.Size]byte]bool{},
		given: map[federation.ObjectKey]*config.Object{},
	}
}

// Kinds is part of config.Source.
func (v *Validated) Kinds() []federation.Kind { return v.source.Kinds() }

// Run is part of config.Source.
func (v *Validated) Run(ctx context.Context, to config.Sink) error {
	return v.source.Run(ctx, &checking{Validated: v, to: to, bad: map[federation.ObjectKey]config.Problem{}})
}

// rememberWritten records that the object is valid and about to be written. It may be nil.
func (v *Validated) rememberWritten(o *config.Object) {
	if v == nil || o == nil || !v.validates(o.Key) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.wrote) >= maxRemembered {
		clear(v.wrote)
	}
	v.wrote[sha256.Sum256(o.Manifest)] = true
}

func (v *Validated) validates(key federation.ObjectKey) bool {
	_, has := v.schema.Kind(key.Of())
	return has
}

func (v *Validated) forgetWritten(o *config.Object) bool {
	digest := sha256.Sum256(o.Manifest)
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.wrote[digest]
	delete(v.wrote, digest)
	if len(v.wrote) == 0 {
		v.wrote = map[[sha256.Size]byte]bool{} // a map keeps the room that it once needed
	}
	return known
}

// checking is one Run.
type checking struct {
	*Validated
	to       config.Sink
	bad      map[federation.ObjectKey]config.Problem
	reported []config.Problem // by the source
}

// Update is part of config.Sink.
func (c *checking) Update(u config.Update) {
	began := time.Now()
	faults := make([]*config.Problem, len(u.Events))
	parallel.Each(len(u.Events), func(i int) { faults[i] = c.fault(u.Events[i].New) })
	before := c.given
	if u.Full {
		c.given = make(map[federation.ObjectKey]*config.Object, len(u.Events))
		c.log.Info("the stored configuration is validated", "objects", c.count(u.Events), "duration", time.Since(began))
	}
	known := len(c.bad)
	events := make([]config.Event, 0, len(u.Events))
	for i, e := range u.Events {
		if !c.validates(e.Key()) {
			events = append(events, e)
		} else if given := c.take(e, before, faults[i]); given != (config.Event{}) || u.Full && given.New != nil {
			events = append(events, given)
		}
	}
	u.Events = events
	c.to.Update(u)
	if known+len(c.bad) > 0 {
		c.report()
	}
}

// count is the number of objects that users applied: automatic VIPs are the hub's own.
func (c *checking) count(events []config.Event) int {
	n := 0
	for _, e := range events {
		if e.New != nil && !kind.Internal(e.New.Key.Of()) {
			n++
		}
	}
	return n
}

// take returns the event to pass on; an empty one if the fault leaves the object
// as it was.
func (c *checking) take(e config.Event, before map[federation.ObjectKey]*config.Object, fault *config.Problem) config.Event {
	key := e.Key()
	old, now := c.given[key], e.New
	delete(c.bad, key)
	if fault != nil {
		now = before[key]
		fault.Message += fate(now)
		c.bad[key] = *fault
		c.log.Warn("a stored object is not valid", "object", fault.Object, "field", fault.Field, "problem", fault.Message)
	}
	if now == old {
		return config.Event{}
	}
	c.given[key] = now
	if now == nil {
		delete(c.given, key)
	}
	return config.Event{Old: old, New: now}
}

func fate(last *config.Object) string {
	if last == nil {
		return "; it was written past validation and is not used: apply it again"
	}
	return "; it was written past validation, and the last valid one stays in force: apply it again"
}

// fault says why a stored object does not pass.
func (c *checking) fault(o *config.Object) *config.Problem {
	if o == nil || !c.validates(o.Key) {
		return nil
	}
	if last := c.given[o.Key]; last != nil && bytes.Equal(last.Manifest, o.Manifest) || c.forgetWritten(o) {
		return nil
	}
	value, err := decode(o)
	if err != nil {
		return &config.Problem{Code: codeQuarantined, Object: o.Key.String(), Message: err.Error()}
	}
	_, problems := c.schema.Admit(value, nil)
	if len(problems) == 0 {
		return nil
	}
	first := problems[0]
	if more := len(problems) - 1; more > 0 {
		first.Message += fmt.Sprintf(" (and %d more problems)", more)
	}
	return &config.Problem{Code: codeQuarantined, Object: o.Key.String(), Field: first.Field, Message: first.Message}
}

// Trouble is part of config.Sink.
func (c *checking) Trouble(problems []config.Problem) {
	c.reported = problems
	c.report()
}

func (c *checking) report() {
	all := slices.Clone(c.reported)
	for _, key := range slices.SortedFunc(maps.Keys(c.bad), federation.ObjectKey.Compare) {
		all = append(all, c.bad[key])
	}
	c.to.Trouble(all)
}
