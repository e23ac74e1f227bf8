package isthmus_test

import (
	"slices"
	"strings"
	"testing"
)

// floor is a row of the table of floors in IMPORTS.md.
type floor struct {
	name  string
	rooms []string // PATH, or PATH/… for it and all below that no other row has
	apart bool     // rooms of different words do not import each other
	used  []bool   // words that some room needs
}

// level is a floor, and the word of its row, that a room has.
type level struct{ floor, word int }

func TestNoImportRunsUp(t *testing.T) {
	var floors []floor
	for _, cells := range readTable(t, "floor", 3) {
		f := floor{name: cells[0], rooms: words(cells[1]), apart: cells[2] == "no"}
		f.used = make([]bool, len(f.rooms))
		floors = append(floors, f)
	}
	if len(floors) == 0 {
		t.Fatal("IMPORTS.md has no table of floors")
	}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		own, ok := placeOf(room, floors)
		if !ok {
			t.Errorf("the table of floors in IMPORTS.md does not have %s: say on which it is", room)
			continue
		}
		floors[own.floor].used[own.word] = true
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			at, _ := placeOf(other, floors)
			switch {
			case at.floor > own.floor:
				t.Errorf("%s, of the floor %q, imports %s, of the floor %q above: move what they share below both",
					room, floors[own.floor].name, other, floors[at.floor].name)
			case at.floor == own.floor && at.word != own.word && floors[own.floor].apart:
				t.Errorf("%s imports %s, and rooms of the floor %q do not know each other: move what they share below them",
					room, other, floors[own.floor].name)
			}
		}
	}
	for _, f := range floors {
		for i, used := range f.used {
			if !used {
				t.Errorf("the floor %q has %s, of which there is no room", f.name, f.rooms[i])
			}
		}
	}
}

// placeOf finds the longest word for the room.
func placeOf(room string, floors []floor) (best level, found bool) {
	longest := 0
	for i, f := range floors {
		for j, word := range f.rooms {
			path, below := strings.CutSuffix(word, "/…")
			matches := room == path || below && strings.HasPrefix(room, path+"/")
			length := 2 * len(path) // of two words of the same path, that for the room alone comes first
			if !below {
				length++
			}
			if matches && length > longest {
				best, found, longest = level{i, j}, true, length
			}
		}
	}
	return best, found
}

func TestFloorsOfRooms(t *testing.T) {
	floors := []floor{{rooms: []string{"a", "b/…"}}, {rooms: []string{"b/c", "b"}}}
	for room, want := range map[string]level{"a": {0, 0}, "b/d": {0, 1}, "b/c/d": {0, 1}, "b/c": {1, 0}, "b": {1, 1}} {
		if got, ok := placeOf(room, floors); !ok || got != want {
			t.Errorf("%s is at %v, want %v", room, got, want)
		}
	}
	if slices.ContainsFunc([]string{"c", "ab", "a/b"}, func(room string) bool { _, ok := placeOf(room, floors); return ok }) {
		t.Error("rooms without a floor have one")
	}
}
