package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func apiResourcesCommand(io streams) *cobra.Command {
	var r remote
	var format string
	cmd := &cobra.Command{
		Use: "api-resources", Short: "List the kinds of objects and the views of the hub", Args: noArguments,
		Example: "  isthmus api-resources\n  isthmus api-resources -o name",
	}
	r.bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT`: table, wide, name, json or yaml")
	cmd.RunE = withHub(&r, io, func(ctx context.Context, s *session, _ []string) error {
		o, err := parseOutput(format, "table", "wide", "name", "json", "yaml")
		if err != nil {
			return err
		}
		words, err := loadVocabulary(ctx, s)
		if err != nil {
			return err
		}
		return printKinds(s.io, o, words)
	})
	return finish(cmd)
}

func printKinds(io streams, o output, words vocabulary) error {
	if o.sort == "json" || o.sort == "yaml" {
		values := make([]any, len(words))
		for i, k := range words {
			value, err := shownAs(k.Kind, k)
			if err != nil {
				return err
			}
			value["kind"] = k.Kind
			values[i] = value
		}
		return o.printValue(io.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
	}
	t := table{to: io.out, heads: []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}}
	if o.sort == "wide" {
		t.heads = append(t.heads, "VERSIONS")
	}
	for _, k := range words {
		if o.sort == "name" {
			if _, err := fmt.Fprintln(io.out, fullPlural(k)); err != nil {
				return err
			}
			continue
		}
		t.add(row(k, o)...)
	}
	if o.sort == "name" {
		return nil
	}
	for _, own := range [][]string{
		{hubClusters, "", "hub.isthmus.dev/v1", "false", "Cluster", "-"},
		{hubNetworks, "", "hub.isthmus.dev/v1", "false", "Network", "-"},
		{hubProxies, "", "hub.isthmus.dev/v1", "false", "Proxy", "-"},
		{hubServices, "svc", "hub.isthmus.dev/v1", "true", "Service", "-"},
	} {
		t.add(own[:len(t.heads)]...)
	}
	return t.flush()
}

func row(k client.Kind, o output) []string {
	name := k.Plural
	if hubWord(name) != "" {
		name = fullPlural(k)
	}
	cells := []string{name, strings.Join(k.ShortNames, ","), k.Group + "/" + k.Storage, fmt.Sprint(k.Namespaced), k.Kind}
	if o.sort == "wide" {
		cells = append(cells, strings.Join(k.Versions, ","))
	}
	return cells
}
