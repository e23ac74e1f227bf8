package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"isthmus.dev/isthmus/client"
)

// look is how output is dressed: colours and live lines are for terminals only.
type look struct {
	out  bool // standard output takes colours
	live bool // standard error takes a line that is written over
}

func newLook(io streams, noColor bool) look {
	plain := noColor || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return look{out: !plain && isTerminal(io.out), live: os.Getenv("TERM") != "dumb" && isTerminal(io.err)}
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

func (l look) paint(c colour, text string) string {
	if !l.out || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// diff paints the lines of a difference.
func (l look) diff(text string) string {
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

// showQuery prints an operation as it can be sent again.
func showQuery(io streams, request client.Request) {
	_, _ = fmt.Fprintln(io.err, strings.TrimSpace(request.Query)) // nobody to tell if it fails
	if text := jsonText(request.Variables, ""); text != "null" && text != "{}" {
		_, _ = fmt.Fprintln(io.err, "# variables: "+text)
	}
}
