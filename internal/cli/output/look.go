package output

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// Look is how output is dressed: colours and live lines are for terminals only.
type Look struct {
	out  bool // standard output takes colours
	Live bool // standard error takes a line that is written over
}

// NewLook looks whether output goes to a terminal.
func NewLook(io cmdutil.Streams, noColor bool) Look {
	plain := noColor || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return Look{out: !plain && isTerminal(io.Out), Live: os.Getenv("TERM") != "dumb" && isTerminal(io.Err)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

func (l Look) paint(c colour, text string) string {
	if !l.out || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Diff paints the lines of a difference.
func (l Look) Diff(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare, end := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(bare, "+"):
			bare = l.paint(green, bare)
		case strings.HasPrefix(bare, "-"):
			bare = l.paint(red, bare)
		}
		out.WriteString(bare)
		if end {
			out.WriteString("\n")
		}
	}
	return out.String()
}
