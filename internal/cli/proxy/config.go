package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
	xds "isthmus.dev/isthmus/xds/envoy/resource"
)

// sentTypes are the words for types of resources, in the order of pushes, and the last
// part of their type URLs.
func sentTypes() (words []string, names map[string]string) {
	names = map[string]string{}
	for _, r := range xds.Types {
		words = append(words, r.Plural)
		names[r.Plural] = output.TypeName(string(r.Type))
	}
	return words, names
}

// sentItem is one resource as -o json shows it.
type sentItem struct {
	TypeURL      string          `json:"typeUrl"`
	Name         string          `json:"name"`
	VersionSent  *string         `json:"versionSent"`
	VersionAcked *string         `json:"versionAcked"`
	Sent         json.RawMessage `json:"sent"`
	Acked        json.RawMessage `json:"acked"`
	Causes       []client.Ref    `json:"causes"`
}

// sentQuestion is what proxy config asks for.
type sentQuestion struct {
	proxy, kind string
	name        *string
}

func proxyConfigCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var format, name string
	words, types := sentTypes()
	cmd := &cobra.Command{
		Use: "config PROXY [" + strings.Join(words, "|") + "]", Short: "Show the resources that a proxy was sent",
		Long: `Show the resources that a proxy was sent, with the version that was sent last and the
version that the proxy accepted last. PROXY is a node ID from "isthmus get proxies",
or its third part, such as web-1.shop. If proxies in several clusters have that name,
write CLUSTER/PROXY. With -o json or yaml, also shows the resources themselves, and the
configuration objects that each was built from. The content of secrets is never shown.`,
		Example: "  isthmus proxy config web-1.shop\n  isthmus proxy config web-1.shop clusters -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdutil.Usagef("%q needs a proxy; see %q", cmd.CommandPath(), cmd.CommandPath()+" --help")
			}
			return cmdutil.AtMost(2)(cmd, args)
		},
	}
	r.Bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT`: table, json or yaml")
	cmd.Flags().StringVar(&name, "name", "", "only the `RESOURCE` of this name")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		o, err := output.ParseFormat(format, "table", "json", "yaml")
		if err != nil {
			return err
		}
		asked := sentQuestion{proxy: args[0]}
		if len(args) > 1 {
			asked.kind = types[args[1]]
			if asked.kind == "" {
				return cmdutil.Usagef("%q is not a type of resources; write one of %s", args[1],
					cmdutil.QuotedList(slices.Sorted(slices.Values(words))))
			}
		}
		if name != "" {
			asked.name = &name
		}
		return printProxyConfig(ctx, s, o, asked)
	})
	return cmdutil.Finish(cmd)
}

func printProxyConfig(ctx context.Context, s *session.Session, o output.Format, asked sentQuestion) error {
	of, err := resource.Proxy(ctx, s, resource.Hub(resource.Proxies), resource.Name{Name: asked.proxy})
	if err != nil {
		return err
	}
	items := []sentItem{}
	for _, y := range of.Sync {
		if y.State == client.SyncStateNotRequested || asked.kind != "" && output.TypeName(y.TypeUrl) != asked.kind {
			continue
		}
		for one, err := range s.SentResources(ctx, resource.ProxyKey(of), y.TypeUrl, asked.name, o.Name != "table") {
			if err != nil {
				return err
			}
			items = append(items, sentItem{
				y.TypeUrl, one.Name, one.VersionSent, one.VersionAcked, rawJSON(one.Sent),
				rawJSON(one.Acked), one.Causes,
			})
		}
	}
	if o.Name != "table" {
		return o.Print(s.IO.Out, map[string]any{
			"apiVersion": "hub.isthmus.dev/v1", "kind": "ProxyConfig", "clusterID": of.ClusterID,
			"nodeID": of.NodeID, "items": items,
		})
	}
	t := output.Table{To: s.IO.Out, Heads: []string{"TYPE", "NAME", "SENT", "ACKED", "ACCEPTED"}}
	for _, one := range items {
		sent, acked, accepted := output.OrEmpty(one.VersionSent), output.OrEmpty(one.VersionAcked), "yes"
		if sent != acked {
			accepted = "no"
		}
		t.Add(output.TypeName(one.TypeURL), one.Name, output.OrDash(sent), output.OrDash(acked), accepted)
	}
	return t.Flush()
}

func rawJSON(text *string) json.RawMessage {
	if text == nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(*text)
}
