package filewatch

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// Two looks in a row must agree before a file is whole, or gone.
func TestTwoLooksMustAgree(t *testing.T) {
	var looks Looks
	for i, look := range []struct {
		content string // of the file; empty: it is missing
		want    string
	}{
		{"", "same false, missing [], gone []"},
		{"half", "same false, missing [], gone []"},
		{"whole", "same false, missing [], gone []"},
		{"whole", "same true, missing [], gone []"},
		{"", "same false, missing [file], gone []"},
		{"whole", "same false, missing [], gone []"}, // it was replaced
		{"", "same false, missing [file], gone []"},
		{"", "same false, missing [], gone [file]"},
		{"", "same false, missing [], gone []"},
	} {
		same := look.content != "" && looks.Saw("file", sha256.Sum256([]byte(look.content)))
		missing, gone := looks.End()
		if got := fmt.Sprintf("same %t, missing %v, gone %v", same, missing, gone); got != look.want {
			t.Errorf("look %d at %q: %s, want %s", i, look.content, got, look.want)
		}
	}
}
