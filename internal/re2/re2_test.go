package re2

import (
	"strings"
	"testing"
)

func TestR05ProgramsAreBounded(t *testing.T) {
	for expression, want := range map[string]string{
		"/api/v[0-9]+/users/[^/]+": "", `(?i)bearer .+`: "", `\pL+`: "", "a{1000}": "",
		`^https?://([a-z0-9-]+\.)*example\.com(:\d+)?$`: "", "[^/]*": "",
		".{1,255}": "",
		"":         "empty", "(": "not RE2", "(?=x)": "not RE2", strings.Repeat("a", 1025): "1025 bytes",
		strings.Repeat("a{1000}", 100):                          "RE2 instructions",
		`(\pL{10}){10}`:                                         "RE2 instructions",
		`[\x{100}-\x{10ffff}]{1000}`:                            "RE2 instructions",
		`((a{10}){10}){10}` + strings.Repeat("(b{100}){9}", 20): "RE2 instructions",
	} {
		err := Check(expression)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.40q is refused: %v", expression, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, want %q", expression, err, want)
		}
	}
}

// Envoy 1.40 refuses a whole resource because of such a class (seen), and knows all other categories and scripts of Go's unicode.
func TestR05ClassesHaveTheNamesOfRE2(t *testing.T) {
	for _, expression := range []string{
		`\p{LC}`, `\p{^LC}`, `\P{Cn}`, `[\p{Cn}]`, `\p{Letter}`, `\p{ASCII}`, `\p{greek}`, `\p{ L}`, `\p{Lu}\p{lu}`, `\\\p{Letter}`,
	} {
		if err := Check(expression); err == nil || !strings.Contains(err.Error(), "not RE2") {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, expression := range []string{`\p{Lu}`, `\p{^Greek}`, `[\P{Han}a]`, `\pL`, `\PN`, `\p{Any}`, `\Q\p{Letter}\E`, `\\p{2}`} {
		if err := Check(expression); err != nil {
			t.Errorf("%q: %v", expression, err)
		}
	}
}

// Envoy 1.40 refuses all routes of a port because of such an expression (seen); Go accepts it.
func TestR05EscapesOfWideCharacters(t *testing.T) {
	for _, expression := range []string{`\x{100}`, `[^\x{0100}]`, `a\x{10FFFF}`, `\777`, `\400`, `\\\x{100}`, `\Qa\E\x{100}`} {
		if err := Check(expression); err == nil || !strings.Contains(err.Error(), "Envoy matches bytes") {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, expression := range []string{
		`\x{ff}`, `\x{0000ff}`, `\xff`, `\377`, `ď`, `[ď-ž]`, `\Q\x{100}\E`,
		`\Q\x{100}`, `\\x{100}`, `\\777`,
	} {
		if err := Check(expression); err != nil {
			t.Errorf("%q: %v", expression, err)
		}
	}
}

func TestR110ExpressionsOfAnObjectAreBoundedTogether(t *testing.T) {
	const large = "a{900}" // about 3,600 instructions
	var sum Sum
	accepted := 0
	for sum.Check(large) == nil {
		accepted++
	}
	if accepted < 200 || accepted > 1500 {
		t.Errorf("%d large expressions are accepted", accepted)
	}
	err := sum.Check("b")
	if !sum.Exceeded() || err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("one more: %v", err)
	}
	var small Sum
	for range 2000 {
		if err := small.Check(`^https?://([a-z0-9-]+\.)*example\.com(:\d+)?$`); err != nil {
			t.Fatal(err)
		}
	}
	if err := small.Check("("); err == nil || small.Exceeded() {
		t.Errorf("a wrong expression: %v", err)
	}
}
