// Package text bounds texts that others wrote, for errors, logs, answers and names, and guesses misspelt words.
package text

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
)

const ellipsis = "…"

// Cut returns the text, or as much of its beginning as fits into so many bytes with an
// ellipsis. What is cut is valid UTF-8.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most-len(ellipsis), 0)], "") + ellipsis
}

// First returns the first of several names, at most so many, and how many more there are, such as
// " and 3 more"; empty: none.
func First(names []string, most int) (first []string, more string) {
	if n := len(names) - most; n > 0 {
		return names[:most], fmt.Sprintf(" and %d more", n)
	}
	return names, ""
}

// Label returns a DNS label of at most so many bytes for a DNS name. Other names give other
// labels; a name that is such a label is its own.
func Label(name string, most int) string {
	if !strings.Contains(name, ".") && len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "-" + hex.EncodeToString(sum[:8])
	readable := strings.ReplaceAll(name, ".", "-")
	return strings.TrimRight(readable[:min(len(readable), most-len(digest))], "-") + digest
}

// Readable is the text without control characters, cut.
func Readable(text string, most int) string {
	plain := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text[:min(len(text), 4*most)])
	return Cut(plain, most)
}
