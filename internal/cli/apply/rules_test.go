package apply

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/federation/config/validation/validationtest"
)

// isthmus validate refuses what apply refuses, and reports what has no effect.
func TestR27ValidateAgreesWithApply(t *testing.T) {
	cases, err := validationtest.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for len(cases) > 0 {
		cases = judge(t, cases)
	}
}

// judge compares what validate reports about the cases, as one set, with what they want. It returns
// those that have the name of one before them.
func judge(t *testing.T, cases []validationtest.Case) (again []validationtest.Case) {
	files := make([]client.ManifestInput, len(cases))
	for i, c := range cases {
		files[i] = client.ManifestInput{Name: c.Name, Content: c.Manifest}
	}
	seen, err := inspect(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var refused, idle []string
		twice := false
		for _, p := range seen.problems {
			if p.File == c.Name {
				twice = twice || p.Code == "DUPLICATE_OBJECT"
				refused = append(refused, p.Code+" "+p.Field)
			}
		}
		for _, p := range seen.findings {
			if p.File == c.Name {
				idle = append(idle, p.Field)
			}
		}
		slices.Sort(refused)
		switch {
		case twice:
			again = append(again, c)
		case !slices.Equal(refused, c.Refused) || !slices.Equal(idle, c.NoEffect):
			t.Errorf("%s: refused for %v and without effect %v, want %v and %v", c.Name, refused, idle, c.Refused, c.NoEffect)
		}
	}
	return again
}
