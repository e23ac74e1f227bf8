package manifest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Plain scalars that YAML 1.1 (which Kubernetes' tools read) and YAML 1.2 take
// differently, or that do not survive the way through JSON.
var (
	oldBoolean  = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$`)
	decimal     = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9]+$`)
	otherBase   = regexp.MustCompile(`^[-+]?0(x[0-9a-fA-F_]+|o[0-7_]+|b[01_]+)$`)
	underscored = regexp.MustCompile(`^[-+]?[0-9][0-9]*_[0-9_]*(\.[0-9_]*)?$`)
	sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
	notFinite   = regexp.MustCompile(`^([-+]?\.(?i:inf)|\.(?i:nan))$`)
	timestamp   = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \t]+)[0-9].*)?$`)
	fraction    = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?$`)
	exponent    = regexp.MustCompile(`^[-+]?[0-9]+[eE][-+]?[0-9]+$`)
	wholeVar    = regexp.MustCompile(`^\$\{[^{}]*\}$`)
)

// refusal says why a scalar is refused; a zero one: it is not.
type refusal struct {
	code    Code
	message string
}

func ambiguous(text, is, instead string) refusal {
	return refusal{Ambiguous, quote(text) + " is " + is + ": write " + instead}
}

// plain gives the value of a scalar without quotes.
func plain(text string) (any, refusal) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, refusal{}
	case "true", "True", "TRUE":
		return true, refusal{}
	case "false", "False", "FALSE":
		return false, refusal{}
	case "<<", "=":
		return nil, ambiguous(text, "a special value in YAML 1.1", quote(text))
	}
	if !strings.ContainsRune("+-.0123456789yYnNoO", rune(text[0])) {
		return text, refusal{}
	}
	if r := twoMeanings(text); r.code != "" {
		return nil, r
	}
	if decimal.MatchString(text) {
		return integer(text)
	}
	if fraction.MatchString(text) {
		return float(text)
	}
	return text, refusal{}
}

func twoMeanings(text string) refusal {
	switch {
	case oldBoolean.MatchString(text):
		return ambiguous(text, "a boolean in YAML 1.1 and a string in YAML 1.2", booleanOf(text)+" or "+quote(text))
	case leadingZero.MatchString(text):
		return ambiguous(text, "an octal number in YAML 1.1 and a decimal one in YAML 1.2", "it without the leading 0 or as "+quote(text))
	case otherBase.MatchString(text):
		return ambiguous(text, "a number in some versions of YAML only", "it in decimal or as "+quote(text))
	case underscored.MatchString(text):
		return ambiguous(text, "a number in YAML 1.1 and a string in YAML 1.2", strings.ReplaceAll(text, "_", "")+" or "+quote(text))
	case sexagesimal.MatchString(text):
		return ambiguous(text, "a number of base 60 in YAML 1.1 and a string in YAML 1.2", quote(text))
	case timestamp.MatchString(text):
		return ambiguous(text, "a timestamp in YAML 1.1 and a string in YAML 1.2", quote(text))
	case exponent.MatchString(text):
		return ambiguous(text, "a string in YAML 1.1 and a number in YAML 1.2", "it in full or as "+quote(text))
	case notFinite.MatchString(text):
		return refusal{BadNumber, quote(text) + " is not a number of JSON: write a finite number or " + quote(text) + " with the quotes"}
	}
	return refusal{}
}

func booleanOf(text string) string {
	switch strings.ToLower(text) {
	case "y", "yes", "on":
		return "true"
	}
	return "false"
}

func integer(text string) (any, refusal) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, refusal{BadNumber, shorten(text) + " does not fit into 64 bits: write a smaller number, or a string in quotes"}
	}
	return n, refusal{}
}

func float(text string) (any, refusal) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, refusal{BadNumber, shorten(text) + " is too large for a number: write a smaller one, or a string in quotes"}
	}
	return f, refusal{}
}

// checkString refuses a string with a NUL character, however it is written, and
// one that is nothing but a variable.
func checkString(text string) refusal {
	if strings.IndexByte(text, 0) >= 0 {
		return refusal{NulByte, "a NUL character is not text: remove it"}
	}
	if len(text) > 3 && text[0] == '$' && wholeVar.MatchString(text) {
		return refusal{Substitution, quote(text) + " is not replaced here: write the value itself"}
	}
	return refusal{}
}

// checkKey refuses a key with a NUL character.
func checkKey(text string) refusal {
	if strings.IndexByte(text, 0) >= 0 {
		return refusal{NulByte, "a NUL character is not text: remove it from the key"}
	}
	return refusal{}
}

// quote makes a short text fit for a message.
func quote(text string) string { return strconv.Quote(shorten(text)) }

func shorten(text string) string {
	const most = 64
	if r := []rune(text[:min(len(text), 4*most+4)]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
