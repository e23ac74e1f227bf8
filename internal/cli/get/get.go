// Package get has the commands that list things and watch them.
package get

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Commands list things.
func Commands(io cmdutil.Streams) []*cobra.Command {
	return []*cobra.Command{getCommand(io), apiResourcesCommand(io)}
}

// Flags are those of get.
type Flags struct {
	resource.Scope
	Output   string
	selector string
	Watch    bool
}

func getCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var given Flags
	cmd := &cobra.Command{
		Use: "get KIND [NAME…] | KIND/NAME…", Short: "Show objects of the configuration, services, clusters, networks or proxies",
		Long: `Show objects of the configuration by kind, and the views of the hub: services,
attached clusters, networks and connected proxies. Name a kind by its plural,
singular, short name or Kind, with its group if needed: clusters.isthmus.dev are
the objects that define clusters. Name a service by its hostname or its first
labels.`,
		Example: `  isthmus get services -A
  isthmus get virtualservices -n shop
  isthmus get vs web -n shop -o yaml
  isthmus get dr -A -l team=checkout -o name
  isthmus get vs -A -o jsonpath='{.items[*].metadata.name}'
  isthmus get vs -n shop -w
  isthmus get proxies -w`,
		Args:              cmdutil.AtLeastOne("a kind; \"isthmus api-resources\" lists them"),
		ValidArgsFunction: resource.Complete(&r, io),
	}
	f := cmd.Flags()
	r.Bind(f)
	given.Bind(f)
	f.BoolVarP(&given.All, "all-namespaces", "A", false, "objects of all namespaces")
	f.StringVarP(&given.Output, "output", "o", "table", "`FORMAT`: table, wide, yaml, json, name or jsonpath=TEMPLATE")
	f.StringVarP(&given.selector, "selector", "l", "", "only objects with matching labels, as in team=checkout,stage!=test")
	f.BoolVarP(&given.Watch, "watch", "w", false, "show changes until interrupted")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		given.Given = f.Changed("namespace")
		return Run(ctx, s, given, args)
	})
	return cmdutil.Finish(cmd)
}

// getting is what get was asked for.
type getting struct {
	output output.Format
	all    bool // show namespaces
	watch  bool
	which  selection
	table  *output.Table
}

// Run shows what the arguments name, and follows it if that was asked for.
func Run(ctx context.Context, s *session.Session, given Flags, args []string) error {
	if given.All && given.Given {
		return cmdutil.Usagef("-n and -A cannot be used together; remove one")
	}
	o, err := output.ParseFormat(given.Output, "table", "wide", "yaml", "json", "name", "jsonpath")
	if err != nil {
		return err
	}
	g := &getting{output: o, all: given.All, watch: given.Watch, which: selection{namespace: given.In(s)}}
	g.which.labels, err = labels.Parse(given.selector)
	if err != nil {
		return cmdutil.Usagef("-l: %w", err)
	}
	short, cancel := s.Within(ctx)
	defer cancel()
	namespace := ""
	if g.which.namespace != nil {
		namespace = *g.which.namespace
	}
	targets, err := resource.Targets(short, s, args, namespace)
	if err != nil {
		return err
	}
	if err := g.check(targets, given); err != nil {
		return err
	}
	return show(ctx, short, s, g, targets)
}

// check refuses what does not go together.
func (g *getting) check(targets []resource.Target, given Flags) error {
	for _, t := range targets {
		switch {
		case given.selector != "" && (t.Hub != "" || len(t.Names) > 0):
			return cmdutil.Usagef("-l selects objects of the configuration; remove it for %s", t.Plural())
		case given.All && len(t.Names) > 0:
			return cmdutil.Usagef("-A cannot be used with names; use -n NAMESPACE")
		case given.Watch && (len(targets) > 1 || len(t.Names) > 1):
			return cmdutil.Usagef("-w follows one kind or one object; remove the others")
		}
	}
	return nil
}

// show prints everything that was asked for, then follows it if that was, too.
// Short is the context of the first, ctx of the second.
func show(ctx, short context.Context, s *session.Session, g *getting, targets []resource.Target) error {
	var shown []item
	for i, t := range targets {
		before := len(shown)
		for one, err := range itemsOf(short, s, g, t) {
			if err != nil {
				return err
			}
			shown = append(shown, one)
		}
		if !g.isTable() {
			continue
		}
		if i > 0 && len(shown) > before && before > 0 {
			_, _ = fmt.Fprintln(s.IO.Out) // the table's own error tells
		}
		if err := printTable(s, g, t, shown[before:]); err != nil {
			return err
		}
	}
	if g.watch {
		return watchItems(ctx, s, g, targets[0], shown)
	}
	return printItems(s, g, targets, shown)
}

func (g *getting) isTable() bool { return g.output.Name == "table" || g.output.Name == "wide" }

// itemsOf yields what a target asks for.
func itemsOf(ctx context.Context, s *session.Session, g *getting, t resource.Target) iter.Seq2[item, error] {
	switch {
	case len(t.Names) == 0 && t.Hub != "":
		return hubItems(ctx, s, t.Hub, g.which)
	case len(t.Names) == 0:
		return objectItems(ctx, s, t.Kind, g.which)
	}
	return func(yield func(item, error) bool) {
		for _, n := range t.Names {
			for one, err := range itemsNamed(ctx, s, t, n) {
				if !yield(one, err) || err != nil {
					return
				}
			}
		}
	}
}

// itemsNamed yields what has a name: several objects if clusters have them.
func itemsNamed(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		if t.Hub != "" {
			yield(hubItem(ctx, s, t, n))
			return
		}
		for o, err := range resource.Objects(ctx, s, t, n) {
			var one item
			if err == nil {
				one, err = objectItem(o)
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// printTable prints the rows of one type, or that there are none.
func printTable(s *session.Session, g *getting, t resource.Target, shown []item) error {
	if len(shown) == 0 && !g.watch {
		_, err := fmt.Fprintln(s.IO.Err, nothing(g, t))
		return err
	}
	h := objectHeads(t.Kind)
	if t.Hub != "" {
		h = hubHeads(t.Hub)
	}
	g.table = &output.Table{To: s.IO.Out, Heads: g.cells(t, h, h.names)}
	for _, one := range shown {
		g.table.Add(g.cells(t, h, one.cells)...)
	}
	return g.table.Flush()
}

func nothing(g *getting, t resource.Target) string {
	text := "there are no " + t.Plural()
	if g.which.labels != nil && !g.which.labels.Empty() {
		text += fmt.Sprintf(" with labels that match %q", g.which.labels)
	}
	if t.Namespaced() && g.which.namespace != nil {
		text += fmt.Sprintf(" in namespace %q; -A looks in all", *g.which.namespace)
	}
	return text
}

// cells excludes the columns that were not asked for.
func (g *getting) cells(t resource.Target, h heads, all []string) []string {
	if g.output.Name != "wide" {
		all = all[:len(all)-h.wide]
	}
	if !g.all || !t.Namespaced() {
		all = all[1:]
	}
	return all
}

// printItems prints what is not a table: one thing that was named as it is, all else
// as a list.
func printItems(s *session.Session, g *getting, targets []resource.Target, shown []item) error {
	switch {
	case g.isTable():
		return nil
	case g.output.Name == "name":
		for _, one := range shown {
			if _, err := fmt.Fprintln(s.IO.Out, one.id); err != nil {
				return err
			}
		}
		return nil
	case len(targets) == 1 && len(targets[0].Names) == 1 && len(shown) == 1:
		return g.output.Print(s.IO.Out, shown[0].value)
	}
	values := make([]any, len(shown))
	for i, one := range shown {
		values[i] = one.value
	}
	return g.output.Print(s.IO.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
}
