package validation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/validation"
	"isthmus.dev/isthmus/federation/config/validation/validationtest"
)

// Each rule of the kinds refuses what breaks it, at the field and with the code
// that the table names, and nothing else; what has no effect is reported.
func TestR27EachRuleRefusesWhatBreaksIt(t *testing.T) {
	cases, err := validationtest.Cases()
	if err != nil || len(cases) < 200 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		documents, wrong := manifest.Parse(c.Name, []byte(c.Manifest), manifest.Limits{})
		if len(wrong) > 0 || len(documents) != 1 {
			t.Fatal(c.Name, wrong)
		}
		object, problems := set.Admit(documents[0].Value, nil)
		if len(problems) == 0 {
			problems = kind.Check(kind.KeyOf(object), object)
		}
		var refused, idle []string
		for _, p := range problems {
			if p.Message == "" {
				t.Errorf("%s: %s does not say what to do", c.Name, p.Field)
			}
			if p.Code == validation.NoEffect {
				idle = append(idle, p.Field)
				continue
			}
			refused = append(refused, string(p.Code)+" "+p.Field)
		}
		slices.Sort(refused)
		if diff := cmp.Diff(c.Refused, refused) + cmp.Diff(c.NoEffect, idle); diff != "" {
			t.Errorf("%s (-want +got):\n%s%s", c.Name, diff, c.Manifest)
		}
	}
}
