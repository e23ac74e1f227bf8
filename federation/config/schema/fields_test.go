package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation"
)

// TestFieldsAreThoseOfTheSchema: objects and items of lists have fields below them; values, lists
// of values and maps have none.
func TestFieldsAreThoseOfTheSchema(t *testing.T) {
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Fields(federation.NetworkKind)
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{{Name: "cidrs"}, {Name: "clusters"}, {Name: "gateways", Below: []Field{
		{Name: "address"},
		{Name: "from"},
		{Name: "hostname"},
		{Name: "locality"},
		{Name: "port"},
		{Name: "service", Below: []Field{{Name: "hostname"}, {Name: "namespace"}}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = set.Fields(federation.Kind{Name: "Unknown"})
	if got != nil || err != nil {
		t.Errorf("an unknown kind has %v, %v", got, err)
	}
}
