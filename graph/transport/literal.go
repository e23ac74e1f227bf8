package transport

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
)

// surrogateInLiteral reports whether a string of a valid document has the escape of a UTF-16 surrogate. The library takes
// each for U+FFFD, even in pairs, so that an object would be stored with other text than was sent.
func surrogateInLiteral(document string) bool {
	if !strings.Contains(document, `\u`) {
		return false
	}
	text, tokens := []rune(document), lexer.New(&ast.Source{Input: document})
	for {
		token, err := tokens.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return false
		}
		if token.Kind == lexer.String && escapesSurrogate(string(text[token.Pos.Start:token.Pos.End])) {
			return true
		}
	}
}

func escapesSurrogate(literal string) bool {
	for i := 0; i < len(literal); i++ {
		if code, escaped := escapedCode(literal[i:]); escaped && code>>11 == 0xd800>>11 {
			return true
		}
		if literal[i] == '\\' {
			i++
		}
	}
	return false
}
