package pemtext_test

import (
	"encoding/pem"
	"iter"
	"slices"
	"testing"

	"isthmus.dev/isthmus/internal/pemtext"
)

func types(blocks iter.Seq[*pem.Block]) (all []string) {
	for b := range blocks {
		all = append(all, b.Type)
	}
	return all
}

func TestBlocksOfATextAndWhatIsBehindThem(t *testing.T) {
	block := func(of string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: of, Bytes: []byte("x")}))
	}
	one, two := block("ONE"), block("TWO")
	for text, c := range map[string]struct{ blocks, whole []string }{
		"":                  {},
		" \n":               {},
		"other":             {nil, []string{""}},
		one + "\n" + two:    {[]string{"ONE", "TWO"}, []string{"ONE", "TWO"}},
		one + two + " \n\n": {[]string{"ONE", "TWO"}, []string{"ONE", "TWO"}},
		one + "other":       {[]string{"ONE"}, []string{"ONE", ""}},
		one + "a" + two:     {[]string{"ONE"}, []string{"ONE", ""}},
		one + "a\n" + two:   {[]string{"ONE", "TWO"}, []string{"ONE", "TWO"}},
	} {
		blocks, whole := types(pemtext.Blocks([]byte(text))), types(pemtext.Whole([]byte(text)))
		if !slices.Equal(blocks, c.blocks) || !slices.Equal(whole, c.whole) {
			t.Errorf("%q: the blocks are %q, want %q; as a whole %q, want %q", text, blocks, c.blocks, whole, c.whole)
		}
	}
	for range pemtext.Blocks([]byte(one + two)) {
		break
	}
	for range pemtext.Whole([]byte(one + two)) {
		break
	}
}
