package get

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// item is one thing that get shows.
type item struct {
	key      string         // tells it from all others
	id       string         // as -o name writes it; objects of several clusters may share it
	cluster  string         // of an object for the proxies of one cluster alone
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
		return item{}, fmt.Errorf("reading the hub's answer about %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	if metadata, ok := value["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		withoutCredentials(metadata)
	}
	cells := []string{o.Namespace, o.Name}
	for _, c := range kind.Of(federation.Kind{Group: o.Group, Name: o.Kind}).Columns {
		cells = append(cells, cellOf(withStatus(value, o), c.Path))
	}
	cells = append(cells, o.Revision, output.Age(o.CreatedAt), output.Progress(o.Status.Acked, o.Status.Rejected, o.Status.Pending))
	ref := resource.RefOf(o)
	return item{
		key: output.RefTitle(ref), id: output.RefName(ref), cluster: output.OrEmpty(o.ClusterID),
		revision: o.Revision, value: value,
		cells: append(cells, sourceCell(o), output.OrDash(output.OrEmpty(o.Set)),
			fmt.Sprint(len(o.Status.NotHonoured)), fmt.Sprint(len(o.Status.Findings))),
	}, nil
}

// withStatus is the manifest with the status that columns show.
func withStatus(value map[string]any, o client.ObjectSummary) map[string]any {
	if o.Status.Drain == nil {
		return value
	}
	shown := maps.Clone(value)
	shown["status"] = map[string]any{"drain": map[string]any{"percent": o.Status.Drain.Percent}}
	return shown
}

// sourceCell is where an object comes from: the server of configuration, and the cluster if it is for one alone.
func sourceCell(o client.ObjectSummary) string {
	text := strings.ToLower(string(o.Source))
	if server, ok := strings.CutPrefix(o.SourceName, "MCP "); ok {
		text += "/" + server
	}
	if o.ClusterID != nil {
		text += "/" + *o.ClusterID
	}
	return text
}

// withoutCredentials takes out the version of a Cluster's credentials: only the hub of these
// credentials accepts it in a manifest, and a backup is for any hub.
func withoutCredentials(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, federation.CredentialsAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

func objectHeads(k client.Kind) heads {
	names := []string{"NAMESPACE", "NAME"}
	for _, c := range kind.Of(federation.Kind{Group: k.Group, Name: k.Kind}).Columns {
		names = append(names, c.Head)
	}
	return heads{names: append(names, "REVISION", "AGE", "STATUS", "SOURCE", "SET", "NOT-HONOURED", "FINDINGS"), wide: 3}
}

// selection says which things to get.
type selection struct {
	namespace *string // nil: all
	labels    labels.Selector
	name      *string // of an object; nil: all
}

// objectItems yields the objects of a kind that are selected.
func objectItems(ctx context.Context, s *session.Session, kind client.Kind, which selection) iter.Seq2[item, error] {
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
