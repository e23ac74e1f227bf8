package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Part is a headed list of lines.
type Part struct {
	Head  string
	Lines []string
}

// PrintParts prints the parts that have lines.
func PrintParts(to io.Writer, parts []Part) error {
	for _, p := range parts {
		if len(p.Lines) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(to, "%s:\n  %s\n", p.Head, strings.Join(p.Lines, "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

// Table writes rows in columns. What is written later keeps to the widths of what
// was written before, where it can.
type Table struct {
	To     io.Writer
	Heads  []string
	rows   [][]string
	widths []int
	begun  bool
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Flush writes the rows that were added, under the heads the first time.
func (t *Table) Flush() error {
	rows := t.rows
	t.rows = nil
	if !t.begun {
		rows = append([][]string{t.Heads}, rows...)
		t.widths = make([]int, len(t.Heads))
		t.begun = true
	}
	for _, row := range rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(t.To, t.line(row)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) line(row []string) string {
	var out strings.Builder
	for i, cell := range row {
		out.WriteString(cell)
		if i < len(row)-1 {
			out.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+3))
		}
	}
	return strings.TrimRight(out.String(), " ")
}

// Line is a name with a value.
type Line [2]string

// PrintLines writes what has a value, values below each other.
func PrintLines(to io.Writer, lines ...Line) error {
	width := 0
	for _, l := range lines {
		if l[1] != "" {
			width = max(width, utf8.RuneCountInString(l[0]))
		}
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(to, "%-*s  %s\n", width+1, l[0]+":", l[1]); err != nil {
			return err
		}
	}
	return nil
}
