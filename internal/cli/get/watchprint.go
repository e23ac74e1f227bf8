package get

import (
	"fmt"
	"slices"

	"isthmus.dev/isthmus/internal/cli/output"
)

// The types of events of a watch, as in Kubernetes.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

// same reports whether there is nothing new to show.
func (w *watcher) same(before, one item) bool {
	if w.asked.isTable() {
		return w.sameRow(before, one)
	}
	if w.of.Hub == "" {
		return before.revision == one.revision
	}
	return output.JSON(before.value, "") == output.JSON(one.value, "")
}

// sameRow compares what a table shows, apart from ages.
func (w *watcher) sameRow(before, one item) bool {
	h := w.heads()
	visible := func(of item) []string {
		cells := slices.Clone(of.cells)
		for i, name := range h.names {
			if name == "AGE" || name == "LAST-EVENT" {
				cells[i] = ""
			}
		}
		return w.asked.cells(w.of, h, cells)
	}
	return slices.Equal(visible(before), visible(one))
}

// heads are the columns of what is watched.
func (w *watcher) heads() heads {
	if w.of.Hub != "" {
		return hubHeads(w.of.Hub)
	}
	return objectHeads(w.of.Kind)
}

func (w *watcher) printDeleted(one item) error {
	delete(w.shown, one.key)
	switch w.asked.output.Name {
	case "json", "yaml":
		return w.print(deleted, one)
	case "table", "wide":
	default:
		_, err := fmt.Fprintf(w.io.Err, "%s is gone\n", one.title())
		return err
	}
	return w.row(goneCells(w.heads().names, one.cells))
}

// goneCells keep of a row what tells it from others.
func goneCells(names, cells []string) []string {
	kept := slices.Clone(cells)
	for i := 2; i < len(kept); i++ {
		if names[i] != "SOURCE" {
			kept[i] = "-"
		}
	}
	kept[2] = "gone"
	return kept
}

// title is the ID; of an object of one cluster the key, which names the cluster.
func (i item) title() string {
	if i.cluster == "" {
		return i.id
	}
	return i.key
}

// event is a change as JSON and YAML.
func (i item) event(became string) map[string]any {
	event := map[string]any{"type": became, "object": i.value}
	if i.cluster != "" {
		event["clusterID"] = i.cluster
	}
	return event
}

// print shows a thing. As JSON and YAML it is an event, as kubectl get -w
// --output-watch-events writes them.
func (w *watcher) print(became string, one item) error {
	switch w.asked.output.Name {
	case "table", "wide":
		return w.row(one.cells)
	case "name":
		_, err := fmt.Fprintln(w.io.Out, one.id)
		return err
	case "json":
		_, err := fmt.Fprintln(w.io.Out, output.JSON(one.event(became), ""))
		return err
	case "yaml":
		if _, err := fmt.Fprintln(w.io.Out, "---"); err != nil {
			return err
		}
		return w.asked.output.Print(w.io.Out, one.event(became))
	}
	return w.asked.output.Print(w.io.Out, one.value)
}

func (w *watcher) row(cells []string) error {
	w.asked.table.Add(w.asked.cells(w.of, w.heads(), cells)...)
	return w.asked.table.Flush()
}
