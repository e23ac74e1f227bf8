// Package describe has the commands that explain one object, or show the status of the hub.
package describe

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Commands explain one thing, or the whole.
func Commands(io cmdutil.Streams) []*cobra.Command {
	return []*cobra.Command{describeCommand(io), explainCommand(io), historyCommand(io), statusCommand(io)}
}

func describeCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var in resource.Scope
	cmd := &cobra.Command{
		Use: "describe KIND NAME… | KIND/NAME…", Short: "Show the details of objects, services, clusters, networks or proxies",
		Long: `Show the details of objects of the configuration: the object itself, its status at
proxies with the messages of those that rejected it, unsupported fields, findings
and history. Also shows services, clusters, networks and proxies.`,
		Example:           "  isthmus describe vs web -n shop\n  isthmus describe service hello.default.svc.cluster.local\n  isthmus describe cluster c1",
		Args:              cmdutil.AtLeastOne("a kind and a name, or KIND/NAME"),
		ValidArgsFunction: resource.Complete(&r, io),
	}
	f := cmd.Flags()
	r.Bind(f)
	in.Bind(f)
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		in.Given = f.Changed("namespace")
		targets, err := resource.Targets(ctx, s, args, *in.In(s))
		if err != nil {
			return err
		}
		first := true
		for _, t := range targets {
			if len(t.Names) == 0 {
				return cmdutil.Usagef("the name is missing; \"isthmus get %s\" lists the %s", t.Word, t.Plural())
			}
			for _, n := range t.Names {
				if !first {
					_, _ = fmt.Fprintln(s.IO.Out) // the next line's error tells
				}
				first = false
				if err := describeOne(ctx, s, t, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return cmdutil.Finish(cmd)
}

func describeOne(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	switch t.Hub {
	case resource.Services:
		return describeService(ctx, s, t, n)
	case resource.Clusters:
		return describeCluster(ctx, s, t, n)
	case resource.Networks:
		return describeNetwork(ctx, s, t, n)
	case resource.Proxies:
		return Proxy(ctx, s, t, n)
	}
	return describeObjects(ctx, s, t, n)
}

// describeObjects describes each object of a name, with an empty line between them.
func describeObjects(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	between := ""
	for o, err := range resource.Objects(ctx, s, t, n) {
		if err != nil {
			return err
		}
		answer, err := client.ObjectDetails(ctx, s, o.Group, o.Kind, &o.Namespace, o.Name, o.ClusterID)
		if err != nil {
			return err
		}
		if answer.ConfigObject == nil {
			continue // deleted meanwhile
		}
		_, _ = fmt.Fprint(s.IO.Out, between) // the next line's error tells
		between = "\n"
		if err := describeObject(s.IO.Out, *answer.ConfigObject); err != nil {
			return err
		}
	}
	return nil
}

func describeObject(to io.Writer, o client.ObjectDetail) error {
	var hidden []string
	for _, h := range o.Hidden {
		hidden = append(hidden, h.SourceName)
	}
	progress := output.Progress(o.Status.Acked, o.Status.Rejected, o.Status.Pending)
	if progress == "-" {
		progress = "unknown"
	}
	err := output.PrintLines(to,
		output.Line{"Kind", o.Kind + " (" + o.ApiVersion + ")"}, output.Line{"Namespace", o.Namespace}, output.Line{"Name", o.Name},
		output.Line{"Cluster", output.OrEmpty(o.ClusterID)},
		output.Line{"Revision", o.Revision}, output.Line{"Created", output.Moment(o.CreatedAt)},
		output.Line{"Expires", output.Moment(o.ExpiresAt)},
		output.Line{"Set", output.OrEmpty(o.Set)}, output.Line{"Source", o.SourceName}, output.Line{"Hides", strings.Join(hidden, ", ")},
		output.Line{"Proxies", progress},
		output.Line{"Drains", drainText(o.Status.Drain)},
	)
	var ignored, findings, steps, manifest []string
	for _, h := range o.Status.NotHonoured {
		ignored = append(ignored, h.Field+": "+h.Reason)
	}
	for _, f := range o.Status.Findings {
		findings = append(findings, output.FindingText(f))
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
	sections := []output.Part{
		{Head: "Rejected by", Lines: refusals(o.Status)},
		{Head: "Not supported", Lines: ignored},
		{Head: "Findings", Lines: findings},
		{Head: "Problems of its source", Lines: fileProblems(o)},
		{Head: "History", Lines: steps},
		{Head: "Object", Lines: manifest},
	}
	if err != nil {
		return err
	}
	return output.PrintParts(to, sections)
}

// refusals are the messages of the proxies that rejected the object.
func refusals(of client.ObjectDetailStatus) []string {
	var lines []string
	for _, p := range of.Proxies.Nodes {
		lines = append(lines, p.NodeID+": "+output.OrEmpty(p.Error))
	}
	if of.Rejected != nil && *of.Rejected > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", *of.Rejected-len(lines)))
	}
	return lines
}

// fileProblems are those of the folder of manifests that an object comes from: it stays as it was if its file is not valid.
func fileProblems(o client.ObjectDetail) []string {
	if o.ConfigSource == nil || o.ConfigSource.Kind != client.ConfigSourceKindFile {
		return nil
	}
	return output.SourceProblems(*o.ConfigSource, 5)
}

// drainText is what a Drain does now; empty for other kinds.
func drainText(d *client.DrainDetail) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("%d %% of the requests to %s of %s", d.Percent, output.Counted(d.Endpoints, "endpoint"),
		output.Counted(d.Services, "service"))
	if d.RefusedServices > 0 {
		text += fmt.Sprintf("; %s refused", output.Counted(d.RefusedServices, "service"))
	}
	if d.RampEndsAt != nil {
		text += "; its ramp ends at " + output.Moment(d.RampEndsAt)
	}
	return text
}

func stepText(step client.ObjectStep) string {
	text := fmt.Sprintf("%s  revision %s  %s", output.OrDash(output.Moment(step.CreatedAt)), step.Revision, didStep(step))
	for _, word := range []string{output.OrEmpty(step.Author), output.OrEmpty(step.Manager), output.OrEmpty(step.Message)} {
		if word != "" {
			text += "  " + word
		}
	}
	return text
}
