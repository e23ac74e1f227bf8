package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/parallel"
)

// patience is how many times the settling time a whole look waits for files that
// are still written to; then the others count without them.
const patience = 10

// fewest is from how many objects on the loss of more than half is held.
const fewest = 20

// tree is what is known of the folder and what was given of it.
type tree struct {
	o       Options
	self    string // which folder it is
	files   map[string]*known
	given   config.Given
	waiting time.Time // since when files are waited for; zero: none are
	missing time.Time // since when much is missing; zero: nothing is
	said    []config.Problem
}

// known is a file.
type known struct {
	listedFile
	since    time.Time // when it was first seen like this
	taken    string    // stamp of what was read of it
	good     []*config.Object
	problems []config.Problem
}

func newTree(o Options) *tree {
	return &tree{o: o, files: map[string]*known{}}
}

// fileChange is the change of a file: it is gone, or has this content.
type fileChange struct {
	name     string
	gone     bool
	objects  []*config.Object
	problems []config.Problem // with one the objects do not count
}

// replaced reports whether the look found another folder with nothing in it, such as
// a folder that is no longer mounted: that proves nothing about the files.
func (t *tree) replaced(l *listing) bool {
	return len(l.files) == 0 && len(t.files) > 0 && l.self != t.self
}

// read compares the look with what is known and reads what changed and settled.
// Without whole nothing is to be taken from it yet. Again reports whether some files
// have not settled.
func (t *tree) read(l *listing, now time.Time) (found []fileChange, whole, again bool) {
	ripe, unripe := t.compare(l, now)
	if len(unripe) > 0 && t.waiting.IsZero() {
		t.waiting = now
	}
	if len(unripe) > 0 && now.Sub(t.waiting) < patience*t.o.Debounce {
		return nil, false, true
	}
	results := make([]fileChange, len(ripe))
	moved := make([]bool, len(ripe))
	parallel.Each(len(ripe), func(i int) { results[i], moved[i] = t.readFile(l, ripe[i]) })
	if !l.unmoved() {
		return nil, false, true
	}
	for i, r := range results {
		if moved[i] {
			again = true
			continue
		}
		found = append(found, r)
	}
	again = again || len(unripe) > 0
	if !again {
		t.waiting = time.Time{}
	}
	t.self = l.self
	return found, true, again
}

// compare notes what the look saw. Ripe are the changed files that have settled.
func (t *tree) compare(l *listing, now time.Time) (ripe, unripe []string) {
	for name, seen := range l.files {
		f := t.files[name]
		if f == nil {
			f = &known{}
			t.files[name] = f
		}
		f.remember(seen, now)
	}
	for name, f := range t.files {
		if _, there := l.files[name]; !there && !l.isUnknown(name) {
			f.remember(listedFile{}, now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		switch f := t.files[name]; {
		case l.isUnknown(name):
		case f.stamp == f.taken && f.stamp != "":
		case now.Sub(f.since) >= t.o.Debounce || !f.changed.IsZero() && now.Sub(f.changed) >= t.o.Debounce:
			ripe = append(ripe, name)
		default:
			unripe = append(unripe, name)
		}
	}
	return ripe, unripe
}

func (f *known) remember(seen listedFile, now time.Time) {
	if f.since.IsZero() || f.stamp != seen.stamp {
		f.since = now
	}
	f.listedFile = seen
}

func (t *tree) readFile(l *listing, name string) (n fileChange, moved bool) {
	n.name = name
	switch f := t.files[name]; {
	case f.stamp == "":
		n.gone = true
		return n, false
	case f.refused != nil:
		n.problems = []config.Problem{*f.refused}
		return n, false
	}
	data, whole, refused := l.content(name)
	switch {
	case !whole:
		return n, true
	case refused != nil:
		n.problems = []config.Problem{*refused}
	default:
		n.objects, n.problems = decode(t.o, name, data)
	}
	return n, false
}

// take makes the news part of the tree and returns what that changes, and all
// that is wrong now. Held means that the change waits.
func (t *tree) take(found []fileChange, now time.Time) (events []config.Event, problems []config.Problem, held bool) {
	for _, n := range found {
		f := t.files[n.name]
		f.taken = f.stamp
		switch {
		case n.gone:
			delete(t.files, n.name)
		case len(n.problems) > 0:
			f.problems = n.problems
			if isManifest(n.name) {
				f.problems[0].Message += stays(f.good)
			}
		default:
			f.good, f.problems = n.objects, nil
		}
	}
	wanted, problems := t.effective()
	lost := 0
	for key := range t.given.Objects {
		if wanted[key] == nil {
			lost++
		}
	}
	if len(t.given.Objects) >= fewest && 2*lost > len(t.given.Objects) {
		if t.missing.IsZero() {
			t.missing = now
		}
		if left := t.o.Hold - now.Sub(t.missing); left > 0 {
			return nil, append(problems, config.Problem{Code: codeHeld, Message: fmt.Sprintf(
				"%d of %d objects are missing at once; they stay until they have been missing for %v", lost, len(t.given.Objects), t.o.Hold)}), true
		}
	}
	t.missing = time.Time{}
	return t.change(wanted), problems, false
}

func stays(good []*config.Object) string {
	if len(good) == 0 {
		return "; nothing of the file is used"
	}
	return "; what the file said before stays"
}

// effective is what all files say together. Of what several places define, none
// counts, and the object stays as it was (B-Y7).
func (t *tree) effective() (map[federation.ObjectKey]*config.Object, []config.Problem) {
	wanted := map[federation.ObjectKey]*config.Object{}
	places := map[federation.ObjectKey][]string{}
	var problems []config.Problem
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		problems = append(problems, t.files[name].problems...)
		for _, o := range t.files[name].good {
			wanted[o.Key] = o
			places[o.Key] = append(places[o.Key], name)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(places), federation.ObjectKey.Compare) {
		if len(places[key]) < 2 {
			continue
		}
		fate := "it is not used"
		wanted[key] = t.given.Objects[key]
		if wanted[key] != nil {
			fate = "it stays as it was"
		} else {
			delete(wanted, key)
		}
		problems = append(problems, config.Problem{Code: codeTwice, Object: key.String(), Message: fmt.Sprintf(
			"it is defined in %s: %s until all but one are removed", strings.Join(places[key], " and in "), fate)})
	}
	return wanted, problems
}

// change makes the wanted objects those that are given.
func (t *tree) change(wanted map[federation.ObjectKey]*config.Object) []config.Event {
	for key := range t.given.Objects {
		if wanted[key] == nil {
			wanted[key] = nil // it is gone
		}
	}
	return t.given.Change(maps.All(wanted))
}

// complain says what is wrong, once.
func (t *tree) complain(to config.Sink, problems []config.Problem) {
	if slices.Equal(t.said, problems) {
		return
	}
	t.said = problems
	for _, p := range problems {
		t.o.Logger.Warn("the folder of configuration", "code", p.Code, "object", p.Object, "field", p.Field, "problem", p.Message)
	}
	to.Trouble(slices.Clone(problems))
}
