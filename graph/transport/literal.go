package transport

import "strings"

// surrogateInLiteral reports whether a string of a valid document has the escape of a UTF-16 surrogate. The library takes
// each for U+FFFD, even in pairs, so that an object would be stored with other text than was sent.
func surrogateInLiteral(document string) bool {
	for i := 0; i < len(document); {
		rest := document[i:]
		switch {
		case rest[0] == '#':
			i += lengthUntil(rest, "\r\n")
		case strings.HasPrefix(rest, `"""`):
			i += blockLength(rest)
		case rest[0] == '"':
			length, found := stringLength(rest)
			if found {
				return true
			}
			i += length
		default:
			i += lengthUntil(rest[1:], `"#`) + 1
		}
	}
	return false
}

func lengthUntil(text, ends string) int {
	if end := strings.IndexAny(text, ends); end >= 0 {
		return end
	}
	return len(text)
}

// blockLength is that of the block string that text begins with; only a backslash before its end escapes.
func blockLength(text string) int {
	const quotes = `"""`
	for i := len(quotes); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], `\`+quotes):
			i += len(quotes)
		case strings.HasPrefix(text[i:], quotes):
			return i + len(quotes)
		}
	}
	return len(text)
}

// stringLength is that of the string that text begins with, or found is true.
func stringLength(text string) (length int, found bool) {
	for i := 1; i < len(text); i++ {
		code, escaped := escapedCode(text[i:])
		switch {
		case escaped && code>>11 == 0xd800>>11:
			return 0, true
		case text[i] == '\\':
			i++
		case text[i] == '"':
			return i + 1, false
		}
	}
	return len(text), false
}
