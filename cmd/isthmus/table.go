package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table writes rows in columns. What is written later keeps to the widths of what
// was written before, where it can.
type table struct {
	to     io.Writer
	heads  []string
	rows   [][]string
	widths []int
	begun  bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// flush writes the rows that were added, under the heads the first time.
func (t *table) flush() error {
	rows := t.rows
	t.rows = nil
	if !t.begun {
		rows = append([][]string{t.heads}, rows...)
		t.widths = make([]int, len(t.heads))
		t.begun = true
	}
	for _, row := range rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(t.to, t.line(row)); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) line(row []string) string {
	var out strings.Builder
	for i, cell := range row {
		out.WriteString(cell)
		if i < len(row)-1 {
			out.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+3))
		}
	}
	return strings.TrimRight(out.String(), " ")
}

// line is a name with a value.
type line [2]string

// printLines writes what has a value, values below each other.
func printLines(to io.Writer, lines ...line) error {
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
