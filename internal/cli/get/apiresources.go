package get

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

func apiResourcesCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var format string
	cmd := &cobra.Command{
		Use: "api-resources", Short: "List the kinds of objects and the views of the hub", Args: cmdutil.NoArguments,
		Example: "  isthmus api-resources\n  isthmus api-resources -o name",
	}
	r.Bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT`: table, wide, name, json or yaml")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, _ []string) error {
		o, err := output.ParseFormat(format, "table", "wide", "name", "json", "yaml")
		if err != nil {
			return err
		}
		words, err := resource.Load(ctx, s)
		if err != nil {
			return err
		}
		return printKinds(s.IO, o, words)
	})
	return cmdutil.Finish(cmd)
}

func printKinds(io cmdutil.Streams, o output.Format, words resource.Vocabulary) error {
	if o.Name == "json" || o.Name == "yaml" {
		values := make([]any, len(words))
		for i, k := range words {
			value, err := output.ShownAs(k.Kind, k)
			if err != nil {
				return err
			}
			value["kind"] = k.Kind
			values[i] = value
		}
		return o.Print(io.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
	}
	t := output.Table{To: io.Out, Heads: []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}}
	if o.Name == "wide" {
		t.Heads = append(t.Heads, "VERSIONS")
	}
	for _, k := range words {
		if o.Name == "name" {
			if _, err := fmt.Fprintln(io.Out, resource.FullPlural(k)); err != nil {
				return err
			}
			continue
		}
		t.Add(row(k, o)...)
	}
	if o.Name == "name" {
		return nil
	}
	for _, own := range [][]string{
		{resource.Clusters, "", "hub.isthmus.dev/v1", "false", "Cluster", "-"},
		{resource.Networks, "", "hub.isthmus.dev/v1", "false", "Network", "-"},
		{resource.Proxies, "", "hub.isthmus.dev/v1", "false", "Proxy", "-"},
		{resource.Services, "svc", "hub.isthmus.dev/v1", "true", "Service", "-"},
	} {
		t.Add(own[:len(t.Heads)]...)
	}
	return t.Flush()
}

func row(k client.Kind, o output.Format) []string {
	name := k.Plural
	if resource.HubWord(name) != "" {
		name = resource.FullPlural(k)
	}
	cells := []string{name, strings.Join(k.ShortNames, ","), k.Group + "/" + k.Storage, fmt.Sprint(k.Namespaced), k.Kind}
	if o.Name == "wide" {
		cells = append(cells, strings.Join(k.Versions, ","))
	}
	return cells
}
