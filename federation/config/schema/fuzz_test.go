package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAdmit: whatever object comes in, it is admitted or refused with problems
// that say something; applying it does the same.
func FuzzAdmit(f *testing.F) {
	for _, file := range corpus(f, "invalid") {
		if object, _ := read(f, file); len(file)%3 == 0 {
			text, err := json.Marshal(object)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	set := load(f)
	f.Fuzz(func(t *testing.T, text string) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var object map[string]any
		if decoder.Decode(&object) != nil || object == nil {
			return
		}
		plainNumbers(object)
		admitted, problems := set.Admit(object, nil)
		if admitted == nil != (len(problems) > 0) {
			t.Fatalf("%v with problems %v", admitted, problems)
		}
		for _, p := range problems {
			if p.Code == "" || p.Message == "" || p.Code == Internal {
				t.Fatalf("problem %+v", p)
			}
		}
		r, err := set.Apply(nil, object, ApplyOptions{Manager: "f", Now: noon})
		if err != nil || (r.Object == nil) != (len(r.Problems) > 0) {
			t.Fatalf("apply gives %v, %v", r, err)
		}
		if r.Object != nil {
			if _, err := set.Apply(r.Object, object, ApplyOptions{Manager: "g", Now: noon}); err != nil {
				t.Fatal(err)
			}
		}
		Diff(object, admitted)
	})
}
