package xds

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxErrorText bounds what is kept of a client's error text.
const maxErrorText = 1024

// unexplained is the error text of a client that gave none.
const unexplained = "the client gave no reason"

// reasonOf is the error text of a client that refused something, as it may be stored and shown.
func reasonOf(text string) string { return cmp.Or(printable(strings.TrimSpace(text)), unexplained) }

// dumpMarks begin the dump of a whole resource in Envoy's texts; what follows
// may hold anything that the resource holds.
var dumpMarks = []string{"goo.gle/debugproto", "goo.gle/debugstr", "goo.gle/debugonly", "debugproto", "debugstr"}

// printable is a client's error text as it may be stored and shown: without the
// dump of a resource, without control characters, at most 1 KiB.
func printable(text string) string {
	text = text[:min(len(text), 4*maxErrorText)]
	for _, mark := range dumpMarks {
		if at := strings.Index(text, mark); at >= 0 {
			text = text[:at] + "(resource omitted)"
		}
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			quoted := strconv.QuoteToASCII(piece)
			piece = quoted[1 : len(quoted)-1]
		}
		if b.Len()+len(piece) > maxErrorText {
			break
		}
		b.WriteString(piece)
		text = text[size:]
	}
	return b.String()
}
