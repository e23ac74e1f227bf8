package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/client"
)

// item is one thing that get shows.
type item struct {
	key      string         // tells it from all others
	id       string         // as -o name writes it
	revision string         // of an object
	value    map[string]any // as -o json writes it
	cells    []string       // of the table, in the order of heads
}

// heads are the columns of a table. Wide are how many at the end are for -o wide.
type heads struct {
	names []string
	wide  int
}

func objectItem(o client.ObjectSummary) (item, error) {
	var value map[string]any
	if err := kubejson.Unmarshal([]byte(o.Json), &value); err != nil {
		return item{}, fmt.Errorf("reading what the hub says of %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	if metadata, ok := value["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	cells := []string{o.Namespace, o.Name}
	for _, c := range columnsOf(o.Group, o.Kind) {
		cells = append(cells, cellOf(value, c.path))
	}
	cells = append(cells, o.Revision, age(o.CreatedAt), progressOf(o.Status.Acked, o.Status.Rejected, o.Status.Pending))
	name := refName(client.Ref{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	return item{
		key: name, id: name,
		revision: o.Revision, value: value,
		cells: append(cells, strings.ToLower(string(o.Source)), orDash(orEmpty(o.Set)),
			fmt.Sprint(len(o.Status.NotHonoured)), fmt.Sprint(len(o.Status.Findings))),
	}, nil
}

// progressOf says how far an object is with proxies.
func progressOf(acked, rejected, pending *int) string {
	if acked == nil || rejected == nil || pending == nil {
		return "-"
	}
	all := *acked + *rejected + *pending
	switch {
	case *rejected > 0:
		return fmt.Sprintf("rejected %d/%d", *rejected, all)
	case *pending > 0:
		return fmt.Sprintf("pending %d/%d", *pending, all)
	}
	return fmt.Sprintf("acked %d/%d", *acked, all)
}

func objectHeads(k client.Kind) heads {
	names := []string{"NAMESPACE", "NAME"}
	for _, c := range columnsOf(k.Group, k.Kind) {
		names = append(names, c.head)
	}
	return heads{names: append(names, "REVISION", "AGE", "STATUS", "SOURCE", "SET", "NOT-HONOURED", "FINDINGS"), wide: 3}
}

// age is how long ago something was, as kubectl writes it.
func age(since *time.Time) string {
	if since == nil {
		return "-"
	}
	d := max(time.Since(*since), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// selection says which things to get.
type selection struct {
	namespace *string // nil: all
	labels    labels.Selector
	name      *string // of an object; nil: all
}

// objectItems yields the objects of a kind that are selected.
func objectItems(ctx context.Context, s *session, kind client.Kind, which selection) iter.Seq2[item, error] {
	filter := &client.ConfigObjectFilter{Group: &kind.Group, Kind: &kind.Kind, Name: which.name}
	if kind.Namespaced {
		filter.Namespace = which.namespace
	}
	return func(yield func(item, error) bool) {
		for o, err := range s.Objects(ctx, filter) {
			var shown item
			if err == nil {
				shown, err = objectItem(o)
			}
			if err == nil && !which.fits(shown) {
				continue
			}
			if !yield(shown, err) || err != nil {
				return
			}
		}
	}
}

func (w selection) fits(i item) bool {
	if w.labels == nil || w.labels.Empty() {
		return true
	}
	metadata, _ := i.value["metadata"].(map[string]any)
	has, _ := metadata["labels"].(map[string]any)
	set := labels.Set{}
	for name, value := range has {
		set[name], _ = value.(string)
	}
	return w.labels.Matches(set)
}

// shownAs is a thing of the hub's own as -o json writes it: what GraphQL says of
// it, under a kind and a version.
func shownAs(kind string, thing any) (map[string]any, error) {
	text, err := json.Marshal(thing)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	var value map[string]any
	if err := kubejson.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	value["apiVersion"], value["kind"] = "hub.isthmus.dev/v1", kind
	return value, nil
}
