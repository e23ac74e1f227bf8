package describe

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

func explainCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var where resource.Scope
	var format string
	cmd := &cobra.Command{
		Use: "explain PROXY HOST:PORT", Short: "Explain where a proxy sends requests for a service",
		Long: `Explain where a proxy sends requests for a service. Lists every endpoint of every
cluster that has the service, whether and how the proxy reaches it, and why. Then
lists what is wrong with the service and with the objects for its hostname.

PROXY is a node ID from "isthmus get proxies", or its third part, such as web-1.shop.
HOST is a hostname, or its first labels: reviews of the namespace, or reviews.shop.`,
		Example: `  isthmus explain web-1.shop reviews.shop.svc.cluster.local:9080
  isthmus explain web-1.shop reviews:9080 -n shop -o wide`,
		Args: cmdutil.Exactly(2, "a proxy and HOST:PORT"),
	}
	f := cmd.Flags()
	r.Bind(f)
	where.Bind(f)
	f.StringVarP(&format, "output", "o", "table", "`FORMAT`: table, wide, json or yaml")
	run := session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		o, err := output.ParseFormat(format, "table", "wide", "json", "yaml")
		if err != nil {
			return err
		}
		host, port, err := hostAndPort(args[1])
		if err != nil {
			return err
		}
		return explainTo(ctx, s, o, args[0], resource.Name{Namespace: *where.In(s), Name: host}, port)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		where.Given = cmd.Flags().Changed("namespace")
		return run(cmd, args)
	}
	return cmdutil.Finish(cmd)
}

func hostAndPort(text string) (string, int, error) {
	host, port, err := net.SplitHostPort(text)
	number, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || number < 1 || number > 65535 {
		return "", 0, cmdutil.Usagef("%q is not HOST:PORT; write the host and a port of the service, such as reviews.shop.svc.cluster.local:9080",
			text)
	}
	return host, number, nil
}

func explainTo(ctx context.Context, s *session.Session, o output.Format, proxy string, of resource.Name, port int) error {
	of, err := resource.Hostname(ctx, s, resource.Hub(resource.Services), of)
	if err != nil {
		return err
	}
	answer, err := client.Explain(ctx, s, proxy, of.Name, port)
	if client.CodeOf(err) == "NOT_FOUND" { // of the proxy, as the service was found: say which ones have the name
		_, told := resource.Proxy(ctx, s, resource.Hub(resource.Proxies), resource.Name{Name: proxy})
		return cmp.Or(told, err)
	}
	if err != nil {
		return err
	}
	if o.Name == "json" || o.Name == "yaml" {
		value, err := output.ShownAs("Explanation", answer.Explain)
		if err != nil {
			return err
		}
		return o.Print(s.IO.Out, value)
	}
	if err := explainedEndpoints(s, o, of.Name, answer.Explain.Endpoints); err != nil {
		return err
	}
	var findings []string
	for _, f := range answer.Explain.Findings {
		findings = append(findings, output.FindingText(f))
	}
	return output.PrintParts(s.IO.Out, []output.Part{{Head: "Findings", Lines: findings}})
}

func explainedEndpoints(s *session.Session, o output.Format, host string, all []client.ExplainedEndpoint) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(s.IO.Err, "%s has no endpoints\n", host)
		return err
	}
	t := output.Table{To: s.IO.Out, Heads: []string{"ENDPOINT", "CLUSTER", "NETWORK", "USED", "VIA", "REASON", "MESSAGE"}}
	if o.Name == "wide" {
		t.Heads = append(t.Heads, "CAUSE", "HEALTH", "LOCALITY")
	}
	for _, e := range all {
		t.Add(explained(e, o.Name == "wide")...)
	}
	return t.Flush()
}

func explained(e client.ExplainedEndpoint, wide bool) []string {
	at := e.Endpoint
	var ports []string
	for _, p := range at.Ports {
		ports = append(ports, fmt.Sprint(p.Number))
	}
	used := "no"
	if e.Included {
		used = "yes"
	}
	cells := []string{at.Address + ":" + strings.Join(ports, "+"), at.ClusterID, at.NetworkID, used, string(e.Via), e.Reason, e.Message}
	if !wide {
		return cells
	}
	cause := "-"
	if e.Cause != nil {
		cause = output.RefName(*e.Cause)
	}
	return append(cells, cause, string(at.Health), output.OrDash(placeText(at.Locality)))
}
