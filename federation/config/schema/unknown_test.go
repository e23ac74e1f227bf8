package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// overfull is a VirtualService with that many unknown fields, and whatever else its spec has.
func overfull(t *testing.T, unknown int, more string) map[string]any {
	t.Helper()
	var spec strings.Builder
	for i := range unknown {
		fmt.Fprintf(&spec, `"k%d":"v",`, i)
	}
	return virtualService(t, "", "{"+spec.String()+more+`"hosts":["a.example"]}`)
}

// TestR104UnknownFieldsAreListedUpToALimit: an object gets as many problems as an answer lists, and the last says how
// many fields are not listed.
func TestR104UnknownFieldsAreListedUpToALimit(t *testing.T) {
	set := load(t)
	o := ApplyOptions{Manager: "m", Now: noon}
	live := apply(t, set, nil, virtualService(t, "", `{"hosts":["a.example"]}`), o)
	for name, stored := range map[string]map[string]any{"new": nil, "stored": live} {
		for unknown, last := range map[int]string{
			maxListed: `spec.k999: unknown field "spec.k999"`, 3000: "2001 more problems are not listed: correct these first",
		} {
			r, err := set.Apply(stored, overfull(t, unknown, ""), o)
			if err != nil || len(r.Problems) != maxListed || !strings.HasPrefix(r.Problems[maxListed-1].String(), last) {
				t.Errorf("%s, %d unknown fields: %d problems, %v; the last is %v", name, unknown, len(r.Problems), err, r.Problems[len(r.Problems)-1:])
			}
		}
	}
}

// TestR104FieldsThatNarrowAreNotHiddenByOthers: with very many unknown fields, an object that would apply to more
// without one of them is still refused, and one that would not is still used.
func TestR104FieldsThatNarrowAreNotHiddenByOthers(t *testing.T) {
	set := load(t)
	kept, unknown, problems := set.TakeKnown(overfull(t, 3000, ""))
	if kept == nil || len(unknown) != maxListed || len(problems) > 0 {
		t.Errorf("harmless fields: kept %t, %d unknown, %v", kept != nil, len(unknown), problems)
	}
	narrowing := `"tls":[{"match":[{"port":443,"sniHosts":["a.example"],"zone":"z"}],"route":[{"destination":{"host":"a.example"}}]}],`
	kept, _, problems = set.TakeKnown(overfull(t, 3000, narrowing))
	if kept != nil || !slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == "spec.tls[0].match[0].zone" }) {
		t.Errorf("a field that narrows: kept %t, %v", kept != nil, problems)
	}
}

// TestR105WrongTypesAreListedUpToALimit: so that the library, which compares each problem with all others, does not
// see them, also beside an unknown field.
func TestR105WrongTypesAreListedUpToALimit(t *testing.T) {
	set := load(t)
	o := ApplyOptions{Manager: "m", Now: noon}
	live := apply(t, set, nil, virtualService(t, "", `{"hosts":["a.example"]}`), o)
	numbers := strings.Repeat("7,", 2999) + "7"
	for name, stored := range map[string]map[string]any{"new": nil, "stored": live} {
		for unknown, want := range map[string]int{"": maxListed, `"k":"v",`: maxListed + 1} {
			r, err := set.Apply(stored, virtualService(t, "", "{"+unknown+`"hosts":[`+numbers+`]}`), o)
			last := r.Problems[len(r.Problems)-1]
			if err != nil || len(r.Problems) != want || last.Code != TooManyProblems || !strings.HasPrefix(last.Message, "2001 more") {
				t.Errorf("%s, unknown %s: %d problems, %v; the last is %v", name, unknown, len(r.Problems), err, last)
			}
		}
	}
}
