package gatewayapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestR110ExpressionsOfARouteAreBoundedTogether: matches whose expressions are too much for the route have no effect,
// and say so; those before them stay.
func TestR110ExpressionsOfARouteAreBoundedTogether(t *testing.T) {
	var spec strings.Builder
	spec.WriteString("  rules:\n")
	for rule := range 16 {
		spec.WriteString("  - backendRefs: [{name: web, port: 80}]\n    matches:\n")
		for match := range 6 {
			fmt.Fprintf(&spec, "    - path: {value: /%d/%d}\n      headers:\n", rule, match)
			for header := range 16 {
				fmt.Fprintf(&spec, "      - {name: h%d, type: RegularExpression, value: \"a{900}\"}\n", header)
			}
		}
	}
	w := newFixture(t)
	w.apply("", strings.TrimSpace(plain+route("r", spec.String())))
	objects, problems := Translate(w.aggregate.Latest())
	routes := 0
	for _, o := range objects {
		for _, line := range shown(o) {
			if strings.Contains(line, "h0:{regex") {
				routes++
			}
		}
	}
	if routes < 10 || routes > 60 {
		t.Errorf("%d of 96 matches are in effect", routes)
	}
	if len(problems) == 0 || !strings.Contains(problems[0].Message, "at most 1000000 are accepted") ||
		!strings.HasPrefix(problems[0].Field, "spec.rules[") {
		t.Errorf("the problems are %.500v", problems)
	}
}
