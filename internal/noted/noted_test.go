package noted_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/internal/noted"
)

// letters are by their first letter; members make the value of that name.
var (
	letters = &noted.Kind[int]{Name: "letter", Group: func(key string) string { return key[:1] }, Equal: equal}
	words   = &noted.Kind[int]{Name: "word", Equal: equal}
	members = &noted.Kind[int]{
		Name: "member", Group: func(key string) string { return key[:strings.Index(key, "/")+1] }, Equal: equal,
		About: func(group string) string { return strings.TrimSuffix(group, "/") },
	}
	setting = &noted.Kind[int]{Name: "setting", Equal: equal}
)

func equal(a, b int) bool { return a == b }

// version is one version of three maps and a setting, and of values that are made from them.
type version struct {
	letters, words, members btree.Map[int]
	setting                 int
	notes                   noted.Notes
	values                  map[string]string
}

type sources struct {
	letters, words, members noted.View[int]
	setting                 noted.Value[int]
}

func (s sources) affected(notes noted.Notes) map[string]bool {
	found := map[string]bool{}
	mark := func(value string) { found[value] = true }
	s.letters.Affected(notes, mark)
	s.words.Affected(notes, mark)
	s.members.Affected(notes, mark)
	s.setting.Affected(notes, mark)
	return found
}

// make makes the value: what its members name of letters, or else of words, or else the setting.
func (s sources) make(name string) (text string, r noted.Reader) {
	for key, n := range s.members.In(&r, name+"/") {
		found := false
		for word, n := range s.letters.In(&r, key[len(name)+1:]) {
			text, found = fmt.Sprint(text, " ", word, n), true
		}
		if found {
			continue
		}
		if one, is := s.words.Get(&r, fmt.Sprint("w", n)); is {
			text = fmt.Sprint(text, " ", one)
		} else {
			text = fmt.Sprint(text, " set ", s.setting.Get(&r))
		}
	}
	return text, r
}

func (v version) after(next version) (version, int) {
	s := sources{
		letters: noted.ViewOf(letters, v.letters, next.letters), words: noted.ViewOf(words, v.words, next.words),
		members: noted.ViewOf(members, v.members, next.members), setting: noted.ValueOf(setting, v.setting, next.setting),
	}
	next.values = maps.Clone(v.values)
	notes := v.notes.Txn()
	made := s.affected(v.notes)
	for name := range made {
		text, read := s.make(name)
		notes.Replace(name, read)
		next.values[name] = text
	}
	next.notes = notes.Commit()
	return next, len(made)
}

// TestR96PropertyValuesAreAsComputedFromNothing: over a random history of writes that nobody
// marks, each value is as it would be computed now, notes tell what was read, the notes of
// an earlier version stay as they were, and nothing is computed where nothing changed.
func TestR96PropertyValuesAreAsComputedFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := version{values: map[string]string{}}
		write := func(m btree.Map[int], keys ...string) btree.Map[int] {
			txn := m.Txn()
			key := rapid.SampledFrom(keys).Draw(t, "key")
			if rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
				txn.Delete(key)
			} else {
				txn.Set(key, rapid.IntRange(0, 2).Draw(t, "now"))
			}
			return txn.Commit()
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			next := v
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				next.letters = write(v.letters, "a1", "a2", "b1", "c1")
			case 1:
				next.words = write(v.words, "w0", "w1", "w2")
			case 2:
				next.members = write(v.members, "one/a", "one/b", "two/b", "two/c")
			default:
				next.setting = rapid.IntRange(0, 1).Draw(t, "setting")
			}
			before := slices.Collect(v.notes.Groups("letter"))
			earlier := v.notes
			v, _ = v.after(next)
			if got := slices.Collect(earlier.Groups("letter")); !slices.Equal(got, before) {
				t.Fatalf("the notes of the version before changed from %q to %q", before, got)
			}
			var groups []string
			all := sources{
				letters: noted.ViewOf(letters, v.letters, v.letters), words: noted.ViewOf(words, v.words, v.words),
				members: noted.ViewOf(members, v.members, v.members), setting: noted.ValueOf(setting, v.setting, v.setting),
			}
			for _, name := range []string{"one", "two"} {
				if want, _ := all.make(name); v.values[name] != want {
					t.Fatalf("%s is %q, from nothing it is %q", name, v.values[name], want)
				}
				for key := range v.members.From(name + "/") {
					if strings.HasPrefix(key, name+"/") {
						groups = append(groups, key[len(name)+1:])
					}
				}
			}
			slices.Sort(groups)
			if got := slices.Collect(v.notes.Groups("letter")); !slices.Equal(got, slices.Compact(groups)) {
				t.Fatalf("notes tell that %q were read, not %q", got, slices.Compact(groups))
			}
			if _, made := v.after(v); made > 0 {
				t.Fatalf("%d values are computed again though nothing changed", made)
			}
		}
	})
}

// TestR96NeighboursOfAChangeAreNotAffected: the maps are compared leaf by leaf, and only what
// differs counts.
func TestR96NeighboursOfAChangeAreNotAffected(t *testing.T) {
	v := version{values: map[string]string{}}
	write := func(m btree.Map[int], key string, to int) btree.Map[int] {
		txn := m.Txn()
		txn.Set(key, to)
		return txn.Commit()
	}
	next := v
	for _, group := range []string{"one/a", "two/b"} {
		next.members = write(next.members, group, 1)
	}
	for _, letter := range []string{"a1", "a2", "b1", "b2"} {
		next.letters = write(next.letters, letter, 1)
	}
	v, _ = v.after(next)
	next = v
	next.letters = write(write(v.letters, "a1", 2), "a2", 2)
	after, made := v.after(next)
	if made != 1 || after.values["one"] != " a12 a22" || after.values["two"] != " b11 b21" {
		t.Errorf("a change of one of two values made %d: %q", made, after.values)
	}
}

// TestR96KeysThatBeginAlikeAreApart: who read a key is not affected by a key that it begins with.
func TestR96KeysThatBeginAlikeAreApart(t *testing.T) {
	var before btree.Map[int]
	txn := before.Txn()
	txn.Set("x", 1)
	txn.Set("x\x00y", 1)
	now := txn.Commit()
	var short, long noted.Reader
	view := noted.ViewOf(words, before, now)
	view.Get(&short, "x")
	view.Get(&long, "x\x00y")
	notes := noted.Notes{}.Txn()
	notes.Replace("short", short)
	notes.Replace("long", long)
	next := now.Txn()
	next.Set("x", 2)
	var affected []string
	noted.ViewOf(words, now, next.Commit()).Affected(notes.Commit(), func(value string) { affected = append(affected, value) })
	if !slices.Equal(affected, []string{"short"}) {
		t.Errorf("the change affects %q", affected)
	}
}
