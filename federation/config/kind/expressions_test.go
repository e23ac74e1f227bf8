package kind_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

func TestR05ExpressionsThatEnvoyRefusesAreRefusedAtApply(t *testing.T) {
	large := strings.Repeat("a{1000}", 100)
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	object := func(http map[string]any) map[string]any {
		http["route"] = []any{map[string]any{"destination": map[string]any{"host": "web"}}}
		return map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
			"metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec":     map[string]any{"hosts": []any{"web"}, "http": []any{http}},
		}
	}
	match := func(m map[string]any) map[string]any { return map[string]any{"match": []any{m}} }
	for field, http := range map[string]map[string]any{
		"spec.http[0].match[0].uri.regex":           match(map[string]any{"uri": map[string]any{"regex": large}}),
		"spec.http[0].match[0].headers.x.regex":     match(map[string]any{"headers": map[string]any{"x": map[string]any{"regex": "(?=x)"}}}),
		"spec.http[0].match[0].queryParams.q.regex": match(map[string]any{"queryParams": map[string]any{"q": map[string]any{"regex": large}}}),
		"spec.http[0].rewrite.uriRegexRewrite.match": {"rewrite": map[string]any{"uriRegexRewrite": map[string]any{
			"match":   large,
			"rewrite": "/",
		}}},
		"spec.http[0].corsPolicy.allowOrigins[0].regex": {"corsPolicy": map[string]any{"allowOrigins": []any{map[string]any{"regex": large}}}},
	} {
		_, problems := set.Admit(object(http), nil)
		if len(problems) != 1 || problems[0].Field != field || problems[0].Code != schema.Invalid ||
			!strings.Contains(problems[0].Message, "RE2") {
			t.Errorf("%s: %v", field, problems)
		}
	}
	if _, problems := set.Admit(object(match(map[string]any{
		"uri":     map[string]any{"regex": "/v[0-9]+/.*"},
		"headers": map[string]any{"x": map[string]any{"regex": "*"}},
	})), nil); len(problems) > 0 {
		t.Errorf("harmless expressions are refused: %v", problems)
	}
}

// TestR110ExpressionsOfAnObjectAreBoundedTogether: the object is refused at the expression that is too much.
func TestR110ExpressionsOfAnObjectAreBoundedTogether(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	object := func(expressions int) map[string]any {
		var routes []any
		for range expressions {
			routes = append(routes, map[string]any{
				"match": []any{map[string]any{"uri": map[string]any{"regex": "a{900}"}}},
				"route": []any{map[string]any{"destination": map[string]any{"host": "web"}}},
			})
		}
		return map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
			"metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec":     map[string]any{"hosts": []any{"web"}, "http": routes},
		}
	}
	if _, problems := set.Admit(object(200), nil); len(problems) > 0 {
		t.Errorf("200 expressions are refused: %v", problems)
	}
	_, problems := set.Admit(object(2000), nil)
	if len(problems) != 1 || problems[0].Code != schema.Invalid || !strings.HasPrefix(problems[0].Field, "spec.http[") ||
		!strings.Contains(problems[0].Message, "at most 1000000 are accepted") {
		t.Errorf("2000 expressions: %.600v", problems)
	}
}
