// Package text bounds texts that others wrote, for errors, logs and answers.
package text

import "strings"

const ellipsis = "…"

// Cut returns the text, or as much of its beginning as fits into so many bytes with an
// ellipsis. What is cut is valid UTF-8.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most-len(ellipsis), 0)], "") + ellipsis
}
