package graph_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestVariablesAreNotConverted: what is not a value of the type of a variable is refused
// at its place, with what it must be, as a literal would be. Text was taken for an Int, a
// number for a String, and an enum value in another case failed as INTERNAL.
func TestVariablesAreNotConverted(t *testing.T) {
	t.Parallel()
	const (
		page    = "query($v: Int){services(first: $v){totalCount}}"
		service = "query($v: String!){service(hostname: $v){hostname}}"
		byID    = "query($v: ID!){node(id: $v){id}}"
		byIDs   = "query($v: [ID!]!){nodes(ids: $v){id}}"
		ordered = "query($v: ServiceOrder){services(orderBy: $v){totalCount}}"
		apply   = "mutation($v: ApplyInput!){apply(input: $v){revision}}"
		number  = "an Int: a whole number of at most 32 bits"
	)
	type object = map[string]any
	for name, row := range map[string]struct {
		query      string
		value      any
		at, mustBe string // "": accepted
	}{
		"text for an Int":       {page, "5", "$v", number},
		"fraction":              {page, 1.5, "$v", number},
		"out of range":          {page, 1 << 31, "$v", number},
		"Boolean for an Int":    {page, true, "$v", number},
		"Int":                   {page, 5, "", ""},
		"no Int":                {page, nil, "", ""},
		"number for a String":   {service, 5, "$v", "a string"},
		"fraction for an ID":    {byID, 1.5, "$v", "an ID: a string or a whole number"},
		"number for an ID":      {byID, 5, "", ""},
		"one of a list":         {byIDs, []any{"a", true}, "$v[1]", "an ID: a string or a whole number"},
		"one for a list":        {byIDs, "a", "", ""},
		"enum in another case":  {ordered, object{"field": "endpoints", "direction": "ASC"}, "$v.field", "one of HOSTNAME, ENDPOINTS"},
		"Boolean for an enum":   {ordered, object{"field": "ENDPOINTS", "direction": false}, "$v.direction", "one of ASC, DESC"},
		"enum":                  {ordered, object{"field": "ENDPOINTS", "direction": "ASC"}, "", ""},
		"number for a Duration": {apply, object{"waitFor": object{"state": "ACKED", "timeout": 5}}, "$v.waitFor.timeout", "a string"},
		"text for a Float": {
			apply,
			object{"waitFor": object{"state": "ACKED", "share": "1"}},
			"$v.waitFor.share",
			"a number of at most 64 bits",
		},
		"number that is too large": {
			apply,
			object{"waitFor": object{"state": "ACKED", "share": json.Number("1e400")}},
			"$v.waitFor.share",
			"a number of at most 64 bits",
		},
		"number for an object":        {ordered, 3, "$v", "an object"},
		"object below a list":         {apply, object{"files": []any{object{"name": "a", "content": 1}}}, "$v.files[0].content", "a string"},
		"one object for a list of it": {apply, object{"files": object{"name": "a", "content": 1}}, "$v.files[0].content", "a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := newHub(t).ask(row.query, map[string]any{"v": row.value})
			if row.at == "" {
				if strings.Contains(errs, "GRAPHQL_VALIDATION_FAILED") || strings.Contains(errs, "INTERNAL") {
					t.Errorf("got %s", errs)
				}
				return
			}
			for _, want := range []string{
				`"GRAPHQL_VALIDATION_FAILED"`, `"argument":"` + row.at + `"`,
				"variable." + row.at[1:] + " must be " + row.mustBe,
			} {
				if !strings.Contains(errs, want) {
					t.Errorf("want %s, got %s", want, errs)
				}
			}
		})
	}
}
