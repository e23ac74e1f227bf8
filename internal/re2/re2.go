// Package re2 bounds the cost of regular expressions that Envoy compiles with RE2.
package re2

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// The bounds of an expression. Envoy refuses a whole resource because of one
// program that is larger than its runtime key re2.max_program_size.error_level
// says, which is 32,768 in the bootstraps of isthmus and of Istio.
const (
	MaxBytes   = 1024
	MaxProgram = 10_000 // instructions
)

// MaxSum are the instructions of all expressions of one object. Envoy takes no other configuration while it compiles
// them: a minute for twenty times as many.
const MaxSum = 1_000_000

// Sum bounds the expressions of one object together. The zero value has none yet.
type Sum struct{ instructions int }

// Check reports what is wrong with one more expression of the object.
func (s *Sum) Check(expression string) error {
	n, err := measure(expression)
	s.instructions += n
	if err == nil && s.Exceeded() {
		return fmt.Errorf("the regular expressions of the object up to this one compile to about %d RE2 instructions together; "+
			"at most %d are accepted: repeat less, match prefixes or exact values, or distribute the rules over several objects",
			s.instructions, MaxSum)
	}
	return err
}

// Exceeded reports whether the object has too many.
func (s *Sum) Exceeded() bool { return s.instructions > MaxSum }

// Check reports what is wrong with the expression by itself.
func Check(expression string) error {
	_, err := measure(expression)
	return err
}

// measure returns the instructions of an expression that is accepted.
func measure(expression string) (instructions int, err error) {
	if expression == "" {
		return 0, fmt.Errorf("the regular expression is empty")
	}
	if n := len(expression); n > MaxBytes {
		return 0, fmt.Errorf("the regular expression has %d bytes; at most %d are accepted", n, MaxBytes)
	}
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the regular expression is not RE2: %w", err)
	}
	instructions = program(re)
	if instructions > MaxProgram {
		return 0, fmt.Errorf("the regular expression compiles to about %d RE2 instructions; at most %d are accepted: repeat less, or match a prefix",
			instructions, MaxProgram)
	}
	return instructions, spelt(expression)
}

// spelt reports what Go accepts in an expression and Envoy does not.
func spelt(expression string) error {
	for _, class := range classes.FindAllStringSubmatch(literals.ReplaceAllString(expression, ""), -1) {
		if !hasClass(class[1]) {
			return fmt.Errorf("the regular expression contains %s, which is not RE2: "+
				"write a category such as Lu, or a script such as Greek, in exactly these letters", class[0])
		}
	}
	if escape := wideEscape.FindStringSubmatch(literals.ReplaceAllString(expression, "")); escape != nil {
		return fmt.Errorf("the regular expression contains %s, but Envoy matches bytes: write the character itself", escape[1])
	}
	return nil
}

// Envoy compiles expressions as Latin-1, in which no escape means a character
// above 0xff; characters that are written as they are match by their bytes.
var (
	literals   = regexp.MustCompile(`(?s)\\\\|\\Q.*?(?:\\E|$)`)
	wideEscape = regexp.MustCompile(`(\\x\{0*[1-9A-Fa-f][0-9A-Fa-f]{2,}\}|\\[4-7][0-7]{2})`)
)

// classes are classes of characters by their Unicode names. Go knows more names than RE2, and takes them in any case.
var classes = regexp.MustCompile(`\\[pP]\{\^?([^}]*)\}`)

// hasClass reports whether RE2 has a class of the name.
func hasClass(name string) bool {
	switch name {
	case "Any":
		return true
	case "LC", "Cn":
		return false
	}
	return unicode.Categories[name] != nil || unicode.Scripts[name] != nil
}

// program is an upper bound of the instructions of RE2's program. RE2 matches
// bytes and unrolls repetitions, so that neither the length of an expression nor
// the size of Go's own program, which matches characters, says what it costs.
func program(re *syntax.Regexp) int {
	size := 1
	for _, sub := range re.Sub {
		size += program(sub) + 1
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			size += literal(r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			size += characters(re.Rune[i], re.Rune[i+1])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		size += characters(0, unicode.MaxRune)
	case syntax.OpRepeat:
		size *= max(re.Max, re.Min+1)
	}
	return size
}

func literal(r rune, foldCase bool) int {
	size := utf8.RuneLen(r)
	if !foldCase {
		return size
	}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		size += utf8.RuneLen(other) + 1
	}
	return size
}

// characters is the size of the alternatives of byte ranges that together match
// the UTF-8 of the characters from lo to hi.
func characters(lo, hi rune) int {
	for _, last := range [...]rune{0x7f, 0x7ff, 0xffff} {
		if lo <= last && last < hi {
			return characters(lo, last) + characters(last+1, hi)
		}
	}
	length := encoded(lo)
	for i := 1; i < length; i++ {
		tail := rune(1)<<(6*i) - 1 // what the last i bytes hold
		switch {
		case lo&^tail == hi&^tail:
		case lo&tail != 0:
			return characters(lo, lo|tail) + characters((lo|tail)+1, hi)
		case hi&tail != tail:
			return characters(lo, hi&^tail-1) + characters(hi&^tail, hi)
		}
	}
	return length + 1
}

// encoded is the length of the character in UTF-8, surrogates included.
func encoded(r rune) int {
	switch {
	case r <= 0x7f:
		return 1
	case r <= 0x7ff:
		return 2
	case r <= 0xffff:
		return 3
	}
	return 4
}
