package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"isthmus.dev/isthmus/client"
)

// scope are the flags that say where to look.
type scope struct {
	namespace string
	all       bool
	given     bool // that namespace was
}

func (s *scope) bind(f *pflag.FlagSet) {
	f.StringVarP(&s.namespace, "namespace", "n", "", "`NAMESPACE` of the objects (default: that of the context, or "+defaultNamespace+")")
}

// in is the namespace to look in; nil: all of them.
func (s *scope) in(of *session) *string {
	switch {
	case s.all:
		return nil
	case s.given:
		return &s.namespace
	}
	return &of.namespace
}

type getFlags struct {
	scope
	output   string
	selector string
	watch    bool
}

func getCommand(io streams) *cobra.Command {
	var r remote
	var given getFlags
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
		Args:              atLeastOne("a kind; \"isthmus api-resources\" lists them"),
		ValidArgsFunction: completeObjects(&r, io),
	}
	f := cmd.Flags()
	r.bind(f)
	given.bind(f)
	f.BoolVarP(&given.all, "all-namespaces", "A", false, "objects of all namespaces")
	f.StringVarP(&given.output, "output", "o", "table", "`FORMAT`: table, wide, yaml, json, name or jsonpath=TEMPLATE")
	f.StringVarP(&given.selector, "selector", "l", "", "only objects with matching labels, as in team=checkout,stage!=test")
	f.BoolVarP(&given.watch, "watch", "w", false, "show changes until interrupted")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, args []string) error {
		given.given = f.Changed("namespace")
		return getItems(ctx, s, given, args)
	})
	return finish(cmd)
}

// getting is what get was asked for.
type getting struct {
	output output
	all    bool // show namespaces
	watch  bool
	which  selection
	table  *table
}

func getItems(ctx context.Context, s *session, given getFlags, args []string) error {
	if given.all && given.given {
		return usagef("-n and -A cannot be used together; remove one")
	}
	o, err := parseOutput(given.output, "table", "wide", "yaml", "json", "name", "jsonpath")
	if err != nil {
		return err
	}
	g := &getting{output: o, all: given.all, watch: given.watch, which: selection{namespace: given.in(s)}}
	if g.which.labels, err = labels.Parse(given.selector); err != nil {
		return usagef("-l: %w", err)
	}
	short, cancel := s.within(ctx)
	defer cancel()
	words, err := loadVocabulary(short, s)
	if err != nil {
		return err
	}
	namespace := ""
	if g.which.namespace != nil {
		namespace = *g.which.namespace
	}
	targets, err := words.targets(args, namespace)
	if err != nil {
		return err
	}
	if err := g.check(targets, given); err != nil {
		return err
	}
	return show(ctx, short, s, g, targets)
}

// check refuses what does not go together.
func (g *getting) check(targets []target, given getFlags) error {
	for _, t := range targets {
		switch {
		case given.selector != "" && (t.hub != "" || len(t.names) > 0):
			return usagef("-l selects objects of the configuration; remove it for %s", t.plural())
		case given.all && len(t.names) > 0:
			return usagef("-A cannot be used with names; use -n NAMESPACE")
		case given.watch && (len(targets) > 1 || len(t.names) > 1):
			return usagef("-w follows one kind or one object; remove the others")
		}
	}
	return nil
}

// show prints everything that was asked for, then follows it if that was, too.
// Short is the context of the first, ctx of the second.
func show(ctx, short context.Context, s *session, g *getting, targets []target) error {
	var shown []item
	for i, t := range targets {
		before := len(shown)
		for one, err := range wanted(short, s, g, t) {
			if err != nil {
				return err
			}
			shown = append(shown, one)
		}
		if !g.isTable() {
			continue
		}
		if i > 0 && len(shown) > before && before > 0 {
			_, _ = fmt.Fprintln(s.io.out) // the table's own error tells
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

func (g *getting) isTable() bool { return g.output.sort == "table" || g.output.sort == "wide" }

// wanted yields what a target asks for.
func wanted(ctx context.Context, s *session, g *getting, t target) iter.Seq2[item, error] {
	switch {
	case len(t.names) == 0 && t.hub != "":
		return hubItems(ctx, s, t.hub, g.which)
	case len(t.names) == 0:
		return objectItems(ctx, s, t.kind, g.which)
	}
	return func(yield func(item, error) bool) {
		for _, n := range t.names {
			one, err := itemNamed(ctx, s, t, n)
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// itemNamed gets a thing by its name.
func itemNamed(ctx context.Context, s *session, t target, n named) (item, error) {
	if t.hub != "" {
		return hubItem(ctx, s, t, n)
	}
	answer, err := client.Object(ctx, s, t.kind.Group, t.kind.Kind, &n.namespace, n.name, nil)
	if err != nil {
		return item{}, err
	}
	if answer.ConfigObject == nil {
		return item{}, elsewhere(ctx, s, t, n)
	}
	return objectItem(*answer.ConfigObject)
}

func notFound(t target, n named) error {
	in, all := "", ""
	if t.namespaced() {
		in, all = fmt.Sprintf(" in namespace %q", n.namespace), " -A"
	}
	return fmt.Errorf("%s %q not found%s; \"isthmus get %s%s\" lists them", t.plural(), n.name, in, t.word, all)
}

// elsewhere is that an object is not there, and where one of its name is.
func elsewhere(ctx context.Context, s *session, t target, n named) error {
	filter := &client.ConfigObjectFilter{Group: &t.kind.Group, Kind: &t.kind.Kind, Name: &n.name}
	for o, err := range s.Objects(ctx, filter) {
		if err != nil {
			break
		}
		return fmt.Errorf("%s %q not found in namespace %q; there is one in namespace %q: use -n %s",
			t.plural(), n.name, n.namespace, o.Namespace, o.Namespace)
	}
	return notFound(t, n)
}

// printTable prints the rows of one sort, or says that there are none.
func printTable(s *session, g *getting, t target, shown []item) error {
	if len(shown) == 0 && !g.watch {
		_, err := fmt.Fprintln(s.io.err, nothing(g, t))
		return err
	}
	h := objectHeads(t.kind)
	if t.hub != "" {
		h = hubHeads(t.hub)
	}
	g.table = &table{to: s.io.out, heads: g.cells(t, h, h.names)}
	for _, one := range shown {
		g.table.add(g.cells(t, h, one.cells)...)
	}
	return g.table.flush()
}

func nothing(g *getting, t target) string {
	text := "there are no " + t.plural()
	if g.which.labels != nil && !g.which.labels.Empty() {
		text += fmt.Sprintf(" with labels that match %q", g.which.labels)
	}
	if t.namespaced() && g.which.namespace != nil {
		text += fmt.Sprintf(" in namespace %q; -A looks in all", *g.which.namespace)
	}
	return text
}

// cells leaves out the columns that were not asked for.
func (g *getting) cells(t target, h heads, all []string) []string {
	if g.output.sort != "wide" {
		all = all[:len(all)-h.wide]
	}
	if !g.all || !t.namespaced() {
		all = all[1:]
	}
	return all
}

// printItems prints what is no table: one thing that was named as it is, all else
// as a list.
func printItems(s *session, g *getting, targets []target, shown []item) error {
	switch {
	case g.isTable():
		return nil
	case g.output.sort == "name":
		for _, one := range shown {
			if _, err := fmt.Fprintln(s.io.out, one.id); err != nil {
				return err
			}
		}
		return nil
	case len(targets) == 1 && len(targets[0].names) == 1:
		return g.output.printValue(s.io.out, shown[0].value)
	}
	values := make([]any, len(shown))
	for i, one := range shown {
		values[i] = one.value
	}
	return g.output.printValue(s.io.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
}
