package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func explainCommand(io streams) *cobra.Command {
	var r remote
	var where scope
	var format string
	cmd := &cobra.Command{
		Use: "explain PROXY HOST:PORT", Short: "Explain where a proxy sends requests for a service",
		Long: `Explain where a proxy sends requests for a service. Lists every endpoint of every
cluster that has the service, whether the proxy uses it, how it reaches it, and
why, then what is wrong with the service and with the objects for its hostname. PROXY is a node ID from "isthmus get proxies", or its third part, such as
web-1.shop. A HOST without dots is the name of a service in the namespace.`,
		Example: `  isthmus explain web-1.shop reviews.shop.svc.cluster.local:9080
  isthmus explain web-1.shop reviews:9080 -n shop -o wide`,
		Args: exactly(2, "a proxy and HOST:PORT"),
	}
	f := cmd.Flags()
	r.bind(f)
	where.bind(f)
	f.StringVarP(&format, "output", "o", "table", "`FORMAT`: table, wide, json or yaml")
	run := withHub(&r, io, func(ctx context.Context, s *session, args []string) error {
		o, err := parseOutput(format, "table", "wide", "json", "yaml")
		if err != nil {
			return err
		}
		host, port, err := hostAndPort(args[1])
		if err != nil {
			return err
		}
		return explainTo(ctx, s, o, args[0], named{namespace: *where.in(s), name: host}, port)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		where.given = cmd.Flags().Changed("namespace")
		return run(cmd, args)
	}
	return finish(cmd)
}

func hostAndPort(text string) (string, int, error) {
	host, port, err := net.SplitHostPort(text)
	number, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || number < 1 || number > 65535 {
		return "", 0, usagef("%q is not HOST:PORT; write the host and a port of the service, such as reviews.shop.svc.cluster.local:9080", text)
	}
	return host, number, nil
}

func explainTo(ctx context.Context, s *session, o output, proxy string, of named, port int) error {
	if !strings.Contains(of.name, ".") {
		full, err := fullName(ctx, s, target{sort: sort{hub: hubServices}, word: hubServices}, of)
		if err != nil {
			return err
		}
		of = full
	}
	answer, err := client.Explain(ctx, s, proxy, of.name, port)
	if err != nil {
		return err
	}
	if o.sort == "json" || o.sort == "yaml" {
		value, err := shownAs("Explanation", answer.Explain)
		if err != nil {
			return err
		}
		return o.printValue(s.io.out, value)
	}
	if err := explainedEndpoints(s, o, of.name, answer.Explain.Endpoints); err != nil {
		return err
	}
	var findings []string
	for _, f := range answer.Explain.Findings {
		findings = append(findings, findingText(f))
	}
	return printParts(s.io.out, []part{{head: "Findings", lines: findings}})
}

func explainedEndpoints(s *session, o output, host string, all []client.ExplainedEndpoint) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(s.io.err, "%s has no endpoints\n", host)
		return err
	}
	t := table{to: s.io.out, heads: []string{"ENDPOINT", "CLUSTER", "NETWORK", "USED", "VIA", "REASON", "MESSAGE"}}
	if o.sort == "wide" {
		t.heads = append(t.heads, "CAUSE", "HEALTH", "LOCALITY")
	}
	for _, e := range all {
		t.add(explained(e, o.sort == "wide")...)
	}
	return t.flush()
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
		cause = refName(*e.Cause)
	}
	return append(cells, cause, string(at.Health), orDash(placeText(at.Locality)))
}
