package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func describeCommand(io streams) *cobra.Command {
	var r remote
	var in scope
	cmd := &cobra.Command{
		Use: "describe KIND NAME… | KIND/NAME…", Short: "Show the details of objects, services, clusters or proxies",
		Long: `Show the details of objects of the configuration: the object itself, its status at
proxies with the messages of those that rejected it, unsupported fields, findings
and history. Also shows services, clusters and proxies.`,
		Example:           "  isthmus describe vs web -n shop\n  isthmus describe service hello.default.svc.cluster.local\n  isthmus describe cluster c1",
		Args:              atLeastOne("a kind and a name, or KIND/NAME"),
		ValidArgsFunction: completeObjects(&r, io),
	}
	f := cmd.Flags()
	r.bind(f)
	in.bind(f)
	cmd.RunE = withHub(&r, io, func(ctx context.Context, s *session, args []string) error {
		in.given = f.Changed("namespace")
		words, err := loadVocabulary(ctx, s)
		if err != nil {
			return err
		}
		targets, err := words.targets(args, *in.in(s))
		if err != nil {
			return err
		}
		first := true
		for _, t := range targets {
			if len(t.names) == 0 {
				return usagef("the name is missing; \"isthmus get %s\" lists the %s", t.word, t.plural())
			}
			for _, n := range t.names {
				if !first {
					_, _ = fmt.Fprintln(s.io.out) // the next line's error tells
				}
				first = false
				if err := describeOne(ctx, s, t, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return finish(cmd)
}

func describeOne(ctx context.Context, s *session, t target, n named) error {
	switch t.hub {
	case hubServices:
		return describeService(ctx, s, t, n)
	case hubClusters:
		return describeCluster(ctx, s, t, n)
	case hubNetworks:
		return describeNetwork(ctx, s, t, n)
	case hubProxies:
		return describeProxy(ctx, s, t, n)
	}
	answer, err := client.ObjectDetails(ctx, s, t.kind.Group, t.kind.Kind, &n.namespace, n.name)
	if err != nil {
		return err
	}
	if answer.ConfigObject == nil {
		return elsewhere(ctx, s, t, n)
	}
	return describeObject(s.io.out, *answer.ConfigObject)
}

func describeObject(to io.Writer, o client.ObjectDetail) error {
	var hidden []string
	for _, h := range o.Hidden {
		hidden = append(hidden, h.SourceName)
	}
	progress := progressOf(o.Status.Acked, o.Status.Rejected, o.Status.Pending)
	if progress == "-" {
		progress = "unknown"
	}
	err := printLines(to,
		line{"Kind", o.Kind + " (" + o.ApiVersion + ")"}, line{"Namespace", o.Namespace}, line{"Name", o.Name},
		line{"Revision", o.Revision}, line{"Created", moment(o.CreatedAt)}, line{"Expires", moment(o.ExpiresAt)},
		line{"Set", orEmpty(o.Set)}, line{"Source", o.SourceName}, line{"Hides", strings.Join(hidden, ", ")}, line{"Proxies", progress},
	)
	var refusals, ignored, findings, steps, manifest []string
	for _, p := range o.Status.Proxies.Nodes {
		if p.State == client.RolloutStateRejected {
			refusals = append(refusals, p.NodeID+": "+orEmpty(p.Error))
		}
	}
	for _, h := range o.Status.NotHonoured {
		ignored = append(ignored, h.Field+": "+h.Reason)
	}
	for _, f := range o.Status.Findings {
		findings = append(findings, findingText(f))
	}
	if o.History != nil {
		for _, step := range o.History.Nodes {
			steps = append(steps, stepText(step))
		}
		if o.History.Compacted && len(steps) < 10 {
			steps = append(steps, "older revisions were compacted")
		}
	}
	manifest = strings.Split(strings.TrimRight(o.Yaml, "\n"), "\n")
	sections := []part{{head: "Rejected by", lines: refusals}, {head: "Not supported", lines: ignored}, {head: "Findings", lines: findings}, {head: "History", lines: steps}, {head: "Object", lines: manifest}}
	if err != nil {
		return err
	}
	return printParts(to, sections)
}

func stepText(step client.ObjectStep) string {
	text := fmt.Sprintf("%s  revision %s  %s", orDash(moment(step.CreatedAt)), step.Revision, didStep(step))
	for _, word := range []string{orEmpty(step.Author), orEmpty(step.Manager), orEmpty(step.Message)} {
		if word != "" {
			text += "  " + word
		}
	}
	return text
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// part is a headed list of lines.
type part struct {
	head  string
	lines []string
}

// printParts prints the parts that have lines.
func printParts(to io.Writer, parts []part) error {
	for _, p := range parts {
		if len(p.lines) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(to, "%s:\n  %s\n", p.head, strings.Join(p.lines, "\n  ")); err != nil {
			return err
		}
	}
	return nil
}
