package configtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"isthmus.dev/isthmus/federation/config"
)

func fullFirst(t *testing.T, s Written) {
	revision := Must(t, s, Set(0, Object("a", 1), Object("b", 2)))
	heard, _ := Listen(t, s)
	first := heard.WaitRevision(t, revision).Updates[0]
	if !first.Full || first.Revision != revision || len(first.Events) != 2 {
		t.Errorf("the first update is %+v", first)
	}
	for _, e := range first.Events {
		if e.Old != nil || e.New == nil {
			t.Errorf("the first update has the event %+v", e)
		}
	}
}

func revisions(t *testing.T, s Written) {
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	created := Must(t, s, Set(0, Object("a", 1)))
	seen := heard.WaitRevision(t, created)
	if o := seen.Objects[Key("a")]; o == nil || o.Revision != created || created == 0 {
		t.Fatalf("created at %d is %+v", created, o)
	}
	updated := Must(t, s, Set(created, Object("a", 2)))
	seen = heard.WaitRevision(t, updated)
	if o := seen.Objects[Key("a")]; updated <= created || o.Revision != updated || Value[int](o) != 2 {
		t.Errorf("updated at %d after %d is %+v", updated, created, o)
	}
	deleted := Must(t, s, Gone(updated, "a"))
	seen = heard.WaitRevision(t, deleted)
	last := seen.Updates[len(seen.Updates)-1]
	if len(seen.Objects) != 0 || deleted <= updated || len(last.Events) != 1 || last.Events[0].Old.Revision != updated {
		t.Errorf("deleted at %d gives %+v", deleted, last)
	}
}

func oneUpdate(t *testing.T, s Written) {
	base := Must(t, s, Set(0, Object("a", 1), Object("b", 1)))
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, base)
	c := Set(base, Object("a", 2), Object("c", 1))
	c.Changes = append(c.Changes, config.Change{Key: Key("b")})
	revision := Must(t, s, c)
	seen := heard.WaitRevision(t, revision)
	if n := len(seen.Updates); n != 2 || len(seen.Updates[1].Events) != 3 || seen.Updates[1].Revision != base+1 {
		t.Errorf("three changes came as %+v", seen.Updates[1:])
	}
}

func tenThousand(t *testing.T, s Written) {
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	const n = 10_000
	objects := make([]*config.Object, n)
	for i := range objects {
		objects[i] = Object(fmt.Sprintf("o-%05d", i), i)
	}
	seen := heard.WaitRevision(t, Must(t, s, Set(0, objects...)))
	if len(seen.Updates) != 2 || len(seen.Updates[1].Events) != n || len(seen.Objects) != n {
		t.Errorf("%d updates with %d objects", len(seen.Updates), len(seen.Objects))
	}
}

func moved(t *testing.T, s Store) {
	first := Must(t, s, Set(0, Object("a", 1)))
	_, err := s.Commit(t.Context(), Set(0, Object("b", 1)))
	var m *config.Moved
	if !errors.As(err, &m) || m.Base != 0 || m.Now != first {
		t.Errorf("a commit on an old base gives %v", err)
	}
	_, err = s.Commit(t.Context(), Set(first+7, Object("b", 1)))
	if !errors.As(err, &m) || m.Now != first {
		t.Errorf("a commit on a base of the future gives %v", err)
	}
	objects, err := s.At(t.Context(), first)
	if err != nil || len(objects) != 1 {
		t.Errorf("there are %d objects, %v", len(objects), err)
	}
}

// writers adds one to two counters at a time, from many sides: the sum and the
// equality of both show a lost or half a commit.
func writers(t *testing.T, s Store) {
	const sides, each = 16, 5
	base := Must(t, s, Set(0, Object("left", 0), Object("right", 0)))
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, base)
	var group sync.WaitGroup
	for range sides {
		group.Go(func() {
			for done := 0; done < each; {
				switch err := addOne(t, s); {
				case err == nil:
					done++
				case !errors.As(err, new(*config.Moved)):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	seen := heard.WaitRevision(t, base+sides*each)
	if got := Value[int](seen.Objects[Key("left")]); got != sides*each {
		t.Errorf("%d of %d commits are there", got, sides*each)
	}
	for i, u := range seen.Updates[1:] {
		if len(u.Events) != 2 || Value[int](u.Events[0].New) != Value[int](u.Events[1].New) || u.Revision != base+int64(i)+1 {
			t.Fatalf("a reader saw half a commit: %+v", u)
		}
	}
}

func addOne(t *testing.T, s Store) error {
	newest, err := s.Records(t.Context(), 0, 1)
	if err != nil {
		return err
	}
	objects, err := s.At(t.Context(), newest[0].Revision)
	if err != nil {
		return err
	}
	c := Set(newest[0].Revision)
	for i := range objects {
		o := Object(objects[i].Key.Name, Value[int](&objects[i])+1)
		c.Changes = append(c.Changes, config.Change{Key: o.Key, Object: o})
	}
	_, err = s.Commit(t.Context(), c)
	return err
}

func unchanged(t *testing.T, s Store) {
	first := Must(t, s, Set(0, Object("a", 1), Object("b", 1)))
	heard, _ := Listen(t, s)
	before := heard.WaitRevision(t, first)
	second := Must(t, s, Set(first, Object("a", 1), Object("b", 2)))
	seen := heard.WaitRevision(t, second)
	if seen.Objects[Key("a")] != before.Objects[Key("a")] {
		t.Error("an object that did not change was given again")
	}
	if last := seen.Updates[len(seen.Updates)-1]; len(last.Events) != 1 {
		t.Errorf("one change came as %+v", last)
	}
	records, err := s.Records(t.Context(), 0, 1)
	if err != nil || records[0].Changes[0].Action != config.Unchanged || records[0].Changes[1].Action != config.Updated {
		t.Errorf("the record is %+v, %v", records, err)
	}
}

func again(t *testing.T, s Written) {
	revision := Must(t, s, Set(0, Object("a", 1), Object("b", 2)))
	heard, stop := Listen(t, s)
	before := heard.WaitRevision(t, revision)
	stop()
	revision = Must(t, s, Set(revision, Object("b", 3)))
	revision = Must(t, s, Gone(revision, "a"))
	if after := heard.Now(); len(after.Updates) != len(before.Updates) {
		t.Error("an update came after Run had ended")
	}
	anew, _ := Listen(t, s)
	anew.Wait(t, "what was committed before the second Run", func(seen Seen) bool {
		b := seen.Objects[Key("b")]
		return seen.Revision() >= revision && len(seen.Objects) == 1 && b != nil && Value[int](b) == 3
	})
}
