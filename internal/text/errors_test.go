package text_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"isthmus.dev/isthmus/internal/text"
)

func TestWithoutPath(t *testing.T) {
	_, err := os.Open(t.TempDir() + "/none")
	if got := text.WithoutPath(fmt.Errorf("opening: %w", err)); !errors.Is(got, fs.ErrNotExist) || got.Error() != "no such file or directory" {
		t.Errorf("the error of a file is %v", got)
	}
	other := errors.New("other")
	if got := text.WithoutPath(other); !errors.Is(got, other) || got.Error() != "other" || text.WithoutPath(nil) != nil {
		t.Errorf("another error is %v", got)
	}
}

func TestOfProtoJSON(t *testing.T) {
	for said, want := range map[string]string{
		"proto:\u00a0(line 1:2): unknown field \"a\"": "unknown field \"a\"",
		"proto: (line 1:2): unknown field \"a\"":      "unknown field \"a\"",
		"proto:\u00a0syntax error":                    "syntax error",
		"other":                                       "other",
	} {
		if got := text.OfProtoJSON(errors.New(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
