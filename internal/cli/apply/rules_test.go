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
		for _, p := range seen.problems {
			if p.File == c.Name && p.Code != "DUPLICATE_OBJECT" {
				refused = append(refused, p.Code+" "+p.Field)
			}
		}
		for _, p := range seen.findings {
			if p.File == c.Name {
				idle = append(idle, p.Field)
			}
		}
		slices.Sort(refused)
		if !slices.Equal(refused, c.Refused) || !slices.Equal(idle, c.NoEffect) {
			t.Errorf("%s: refused for %v and without effect %v, want %v and %v", c.Name, refused, idle, c.Refused, c.NoEffect)
		}
	}
}
