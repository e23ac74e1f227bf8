package manifest_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/manifest"
)

func TestBY1BombsAreBounded(t *testing.T) {
	bomb := "a: &a [x]\nb: [*a, *a]\n"
	for name, c := range map[string]struct {
		text   string
		limits manifest.Limits
		want   []string
	}{
		"aliases":   {bomb, manifest.Limits{}, []string{"1:4 ANCHOR a", "2:5 ANCHOR b[0]", "2:9 ANCHOR b[1]"}},
		"merge key": {"a: 1\n<<: {b: 2}\n", manifest.Limits{}, []string{"2:1 MERGE_KEY"}},
		"flow nesting": {
			"a: " + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			manifest.Limits{},
			[]string{"1:67 TOO_DEEP a" + zeros(63)},
		},
		"bottomless nesting": {"a: " + strings.Repeat("[", 20_000), manifest.Limits{}, []string{"1:1 TOO_DEEP"}},
		"block nesting":      {"a:\n  " + strings.Repeat("- ", 5_000) + "x\n", manifest.Limits{}, []string{"2:129 TOO_DEEP a" + zeros(63)}},
		"JSON nesting": {
			`{"a":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + "}",
			manifest.Limits{},
			[]string{"1:69 TOO_DEEP a" + zeros(63)},
		},
		"size":           {"a: " + strings.Repeat("x", 16<<20), manifest.Limits{}, []string{"0:0 TOO_LARGE"}},
		"many values":    {"a: [" + strings.Repeat(",", 3_000_000) + "]", manifest.Limits{}, []string{"0:0 TOO_LARGE"}},
		"many documents": {strings.Repeat("---\na: 1\n", 12_002), manifest.Limits{}, []string{"24002:1 TOO_MANY_DOCUMENTS"}},
		"many problems":  {"a: [on, on, on, on]", manifest.Limits{Problems: 2}, []string{"1:5 AMBIGUOUS a[0]", "1:9 TOO_MANY_PROBLEMS a[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := manifest.Parse("bomb.yaml", []byte(c.text), c.limits)
			wantProblems(t, problems, c.want...)
		})
	}
}

func zeros(n int) string { return strings.Repeat("[0]", n) }

func TestBY1AllThatIsAllowedIsRead(t *testing.T) {
	documents, problems := manifest.Parse("f.yaml", []byte(strings.Repeat("a: 1\n---\n", 12_000)), manifest.Limits{})
	if len(documents) != 12_000 || len(problems) > 0 {
		t.Errorf("%d documents, problems %v; want 12,000 and none", len(documents), problems)
	}
	deep := "a: " + strings.Repeat("[", 63) + strings.Repeat("]", 63)
	if _, problems := manifest.Parse("f.yaml", []byte(deep), manifest.Limits{}); len(problems) > 0 {
		t.Errorf("64 levels: %v", problems)
	}
}

func TestBY2AmbiguousYAMLIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":               "3:1 DUPLICATE_KEY a",
		`{"a": 1, "b": {"c": 1, "c": 2}}`:  "1:24 DUPLICATE_KEY b.c",
		"a:\n\tb: 1\n":                     "2:1 TAB",
		"a:\n  - b\n\t- c\n":               "3:1 TAB",
		"a: \"x\x00y\"":                    "1:6 NUL",
		`a: "x\0y"`:                        "1:4 NUL a",
		`{"a": ["x\u0000y"]}`:              "1:8 NUL a[0]",
		`"a\0": 1`:                         "1:1 NUL",
		`{"a": {"b\u0000": 1}}`:            "1:8 NUL a",
		"ä: \xff":                          "1:4 NOT_UTF8",
		"a: no":                            "1:4 AMBIGUOUS a",
		"a: [On]":                          "1:5 AMBIGUOUS a[0]",
		"a: YES":                           "1:4 AMBIGUOUS a",
		"y: 1":                             "1:1 KEY",
		"null: 1":                          "1:1 KEY",
		"true: 1":                          "1:1 KEY",
		"1.5: 1":                           "1:1 KEY",
		"? [a]\n: b":                       "1:3 KEY",
		"a: 0777":                          "1:4 AMBIGUOUS a",
		"a: 0o17":                          "1:4 AMBIGUOUS a",
		"a: 0x1F":                          "1:4 AMBIGUOUS a",
		"a: 08":                            "1:4 AMBIGUOUS a",
		"a: 1_000":                         "1:4 AMBIGUOUS a",
		"a: 22:22":                         "1:4 AMBIGUOUS a",
		"a: .inf":                          "1:4 NUMBER a",
		"a: -.INF":                         "1:4 NUMBER a",
		"a: .nan":                          "1:4 NUMBER a",
		"a: 1e400":                         "1:4 AMBIGUOUS a",
		"a: 1.0e400":                       "1:4 NUMBER a",
		`{"a": 1e400}`:                     "1:7 NUMBER a",
		"a: 2024-01-02":                    "1:4 AMBIGUOUS a",
		"a: 2024-01-02T03:04:05Z":          "1:4 AMBIGUOUS a",
		"a: 1e3":                           "1:4 AMBIGUOUS a",
		"a: 9223372036854775808":           "1:4 NUMBER a",
		`{"a": 18446744073709551616}`:      "1:7 NUMBER a",
		"b: 1\na: !!python/object:os.x {}": "2:4 TAG a",
		"a: !custom 1":                     "1:4 TAG a",
		"a: !!str 1":                       "1:4 TAG a",
		"a: !!binary aGk=":                 "1:4 TAG a",
		"!!map {a: 1}":                     "1:1 TAG",
		"%YAML 1.1\n---\na: 1":             "1:1 DIRECTIVE",
		"a: {b: [}":                        "1:1 SYNTAX",
		"a: 1\n b: 2":                      "2:2 SYNTAX",
		"- a\n- b":                         "1:1 NOT_AN_OBJECT",
		"just text":                        "1:1 NOT_AN_OBJECT",
	} {
		documents, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
		t.Run(text, func(t *testing.T) { wantProblems(t, problems, want) })
		if len(documents) > 0 && !strings.HasPrefix(text, "%") {
			t.Errorf("%q: a document in spite of the problem", text)
		}
	}
}

func TestBY2MessagesSayWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"a: no":    `write false or "no"`,
		"a: 1_000": `write 1000 or "1_000"`,
		"a: 22:22": `write "22:22"`,
		"a:\n\tb":  "write spaces",
	} {
		_, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%q: %v, want one problem that says %q", text, problems, want)
		}
	}
}

func TestBY2WhatIsClearIsTaken(t *testing.T) {
	text := "a: True\nb: 'no'\nc: \"0777\"\nd: 0\ne: -1\nf: |\n  x\n  \ty\ng: a:b\nh: 1.2.3\n8080: x\ni: 10.0.0.0/8\nj: ~\nk: +1.5\nl: node\nm: a\tb # c\n"
	documents, problems := manifest.Parse("f.yaml", []byte(strings.ReplaceAll(text, "\n", "\r\n")), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 1 {
		t.Fatalf("%d documents, problems %v", len(documents), problems)
	}
	for key, want := range map[string]any{
		"a": true, "b": "no", "c": "0777", "d": int64(0), "e": int64(-1), "f": "x\n\ty\n", "g": "a:b", "h": "1.2.3",
		"8080": "x", "i": "10.0.0.0/8", "j": nil, "k": 1.5, "l": "node", "m": "a\tb",
	} {
		if got := documents[0].Value[key]; got != want {
			t.Errorf("%s is %#v, want %#v", key, got, want)
		}
	}
}

func TestBY3EmptyNeverMeansNothingWanted(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only\n  # comments", "---\n---\n...\n", "\uFEFF", "kind: List\nitems: []"} {
		documents, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
		if len(documents) > 0 {
			t.Errorf("%q: %d documents", text, len(documents))
		}
		wantProblems(t, problems, "0:0 EMPTY")
	}
}

func TestBY3EveryProblemOfEveryDocumentIsSaid(t *testing.T) {
	text := "a: on\n---\nb: [\n---\n# empty\n---\nc: 1\nc: 2\nd: 010\n---\ne: 1\n"
	documents, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
	wantProblems(t, problems, "1:4 AMBIGUOUS a", "3:1 SYNTAX", "8:1 DUPLICATE_KEY c", "9:4 AMBIGUOUS d")
	if len(documents) != 1 || documents[0].Index != 3 || documents[0].Line != 11 {
		t.Errorf("documents %+v, want the last one alone, number 3 in line 11", documents)
	}
	if problems[3].Document != 2 {
		t.Errorf("the last problem is of document %d, want 2", problems[3].Document)
	}
}

func TestBY10VariablesAreNotReplaced(t *testing.T) {
	for text, want := range map[string]string{
		"a: ${HOME}":         "1:4 SUBSTITUTION a",
		`a: "${A:-b}"`:       "1:4 SUBSTITUTION a",
		`{"a": ["${HOME}"]}`: "1:8 SUBSTITUTION a[0]",
	} {
		_, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
		wantProblems(t, problems, want)
	}
	documents, problems := manifest.Parse("f.yaml", []byte("a: x-${B}-%REQ(${c})%\n"), manifest.Limits{})
	if len(problems) > 0 || documents[0].Value["a"] != "x-${B}-%REQ(${c})%" {
		t.Errorf("documents %v, problems %v; want the text as it is", documents, problems)
	}
}
