package config_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// TestK96WhatASourceReadsAgainIsNotGivenAgain: sources of files, custom resources and configuration servers give what they read by one
// rule: what is read at once is one revision, an object with the same manifest keeps its own, and the first reading is a revision, too.
func TestK96WhatASourceReadsAgainIsNotGivenAgain(t *testing.T) {
	key := func(name string) federation.ObjectKey { return federation.VirtualServiceKind.Key("shop", name) }
	reading := func(objects ...string) map[federation.ObjectKey]*config.Object {
		all := map[federation.ObjectKey]*config.Object{}
		for i := 0; i < len(objects); i += 2 {
			all[key(objects[i])] = nil
			if manifest := objects[i+1]; manifest != "" {
				all[key(objects[i])] = &config.Object{Key: key(objects[i]), Manifest: []byte(manifest)}
			}
		}
		return all
	}
	var given config.Given
	for _, step := range []struct {
		read     []string // names with manifests; an empty one is of an object that does not exist
		revision int64
		events   []string
	}{
		{nil, 1, nil},
		{[]string{"b", "1", "a", "1", "gone", ""}, 2, []string{"a: -> 1@2", "b: -> 1@2"}},
		{[]string{"b", "1", "a", "1"}, 2, nil},
		{[]string{"b", "2", "a", "1"}, 3, []string{"b: 1@2 -> 2@3"}},
		{[]string{"a", ""}, 4, []string{"a: 1@2 ->"}},
		{[]string{"a", ""}, 4, nil},
		{[]string{"a", "1"}, 5, []string{"a: -> 1@5"}},
	} {
		var events []string
		for _, e := range given.Change(maps.All(reading(step.read...))) {
			events = append(events, fmt.Sprintf("%s:%s ->%s", e.Key().Name, shown(e.Old), shown(e.New)))
		}
		if diff := cmp.Diff(step.events, events); diff != "" || given.Revision != step.revision {
			t.Errorf("after %q the revision is %d, want %d (-want +got):\n%s", step.read, given.Revision, step.revision, diff)
		}
	}
	var all []string
	for _, e := range given.Everything() {
		all = append(all, e.Key().Name+shown(e.New))
	}
	if want := []string{"a 1@5", "b 2@3"}; !slices.Equal(all, want) {
		t.Errorf("given is %q, want %q", all, want)
	}
}

// shown is the manifest of the object and its revision.
func shown(o *config.Object) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" %s@%d", o.Manifest, o.Revision)
}
