package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

type historyFlags struct {
	resource.Scope
	limit  int
	output string
}

func historyCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var h historyFlags
	cmd := &cobra.Command{
		Use: "history [KIND NAME | KIND/NAME]", Short: "Show the changes of the configuration, or of one object",
		Example:           "  isthmus history\n  isthmus history vs web -n shop\n  isthmus history -o json --limit 5",
		Args:              cmdutil.AtMost(2),
		ValidArgsFunction: resource.Complete(&r, io),
	}
	f := cmd.Flags()
	r.Bind(f)
	h.Bind(f)
	f.IntVar(&h.limit, "limit", 20, "the number of revisions, newest first")
	f.StringVarP(&h.output, "output", "o", "table", "`FORMAT`: table, yaml, json or jsonpath=TEMPLATE")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		h.Given = f.Changed("namespace")
		return h.run(ctx, s, args)
	})
	return cmdutil.Finish(cmd)
}

func (h *historyFlags) run(ctx context.Context, s *session.Session, args []string) error {
	o, err := output.ParseFormat(h.output, "table", "yaml", "json", "jsonpath")
	if err != nil {
		return err
	}
	if h.limit < 1 || h.limit > 500 {
		return cmdutil.Usagef("--limit: %d is not from 1 to 500", h.limit)
	}
	if len(args) == 0 {
		return h.ofAll(ctx, s, o)
	}
	t, n, err := objectNamed(ctx, s, args, *h.In(s))
	if err != nil {
		return err
	}
	return h.ofName(ctx, s, o, t, n)
}

// objectNamed reads arguments that name one object of the configuration.
func objectNamed(ctx context.Context, s *session.Session, args []string, namespace string) (resource.Target, resource.Name, error) {
	targets, err := resource.Targets(ctx, s, args, namespace)
	if err != nil {
		return resource.Target{}, resource.Name{}, err
	}
	if len(targets) != 1 || len(targets[0].Names) != 1 {
		return resource.Target{}, resource.Name{}, cmdutil.Usagef("name one object: KIND NAME or KIND/NAME")
	}
	if targets[0].Hub != "" {
		return resource.Target{}, resource.Name{},
			cmdutil.Usagef("%s are a view of the hub, not objects of the configuration; name a kind of \"isthmus api-resources\" with its group, such as clusters.isthmus.dev", targets[0].Hub)
	}
	return targets[0], targets[0].Names[0], nil
}

func (h *historyFlags) ofAll(ctx context.Context, s *session.Session, o output.Format) error {
	steps := []client.ConfigStep{}
	for step, err := range s.History(ctx, nil) {
		if err != nil {
			return err
		}
		steps = append(steps, step)
		if len(steps) == h.limit {
			break
		}
	}
	if o.Name != "table" {
		return printSteps(s.IO, o, steps)
	}
	t := output.Table{To: s.IO.Out, Heads: []string{"REVISION", "TIME", "AUTHOR", "MANAGER", "CHANGES", "MESSAGE"}}
	for _, step := range steps {
		t.Add(
			step.Revision, step.CreatedAt.Format(time.RFC3339), output.OrDash(output.OrEmpty(step.Author)),
			output.OrDash(output.OrEmpty(step.Manager)), changesText(step.Changes), output.OrEmpty(step.Message),
		)
	}
	return t.Flush()
}

// changesText names what changed; where that is much it counts.
func changesText(changes []client.StepChange) string {
	const most = 2
	var parts []string
	for i, c := range changes {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(changes)-most))
			break
		}
		parts = append(parts, output.RefName(c.Object)+" "+output.Did(c.Action))
	}
	return output.OrDash(strings.Join(parts, ", "))
}

// ofName shows what was done to the objects of a name: to the one for all proxies, also
// if it is deleted, and to those of single clusters.
func (h *historyFlags) ofName(ctx context.Context, s *session.Session, o output.Format, t resource.Target, n resource.Name) error {
	refs, err := resource.Refs(ctx, s, t, n)
	if err != nil && !resource.IsNotFound(err) {
		return err
	}
	steps := []client.ObjectStep{}
	if !slices.ContainsFunc(refs, func(r client.Ref) bool { return r.ClusterID == nil }) {
		of := resource.Everywhere(t, n)
		steps, err = formerSteps(ctx, s, of, h.limit)
		if err != nil {
			return err
		}
		if len(steps)+len(refs) == 0 {
			return fmt.Errorf("%s does not exist and is not in the history; \"isthmus history\" lists all changes", output.RefName(of))
		}
	}
	for _, of := range refs {
		found, err := stepsOf(ctx, s, of, h.limit)
		if err != nil {
			return err
		}
		if note := h.missing(of, found); note != "" {
			_, _ = fmt.Fprintln(s.IO.Err, note) // its own error cannot be shown
		}
		steps = append(steps, found.Nodes...)
	}
	if o.Name != "table" {
		return printSteps(s.IO, o, steps)
	}
	return printStepTable(s.IO, steps)
}

// missing describes what the steps of an object lack; empty: nothing.
func (h *historyFlags) missing(of client.Ref, found client.ObjectSteps) string {
	switch {
	case found.Compacted && len(found.Nodes) < h.limit:
		return fmt.Sprintf("older revisions of %s were compacted", output.RefTitle(of))
	case len(found.Nodes) == 0:
		return output.RefTitle(of) + " was never changed through the hub: its source alone has its history"
	}
	return ""
}

func printSteps[T any](io cmdutil.Streams, o output.Format, steps []T) error {
	values := make([]any, len(steps))
	for i, step := range steps {
		value, err := output.ShownAs("Revision", step)
		if err != nil {
			return err
		}
		values[i] = value
	}
	return o.Print(io.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
}

func printStepTable(io cmdutil.Streams, steps []client.ObjectStep) error {
	t := output.Table{To: io.Out, Heads: []string{"REVISION", "TIME", "ACTION", "AUTHOR", "MANAGER", "MESSAGE"}}
	for _, step := range steps {
		t.Add(
			step.Revision, output.OrDash(output.Moment(step.CreatedAt)), didStep(step), output.OrDash(output.OrEmpty(step.Author)),
			output.OrDash(output.OrEmpty(step.Manager)), output.OrEmpty(step.Message),
		)
	}
	return t.Flush()
}

// stepsOf are what was done to an object that exists, the newest first.
func stepsOf(ctx context.Context, s *session.Session, of client.Ref, limit int) (client.ObjectSteps, error) {
	answer, err := client.ObjectHistory(ctx, s, of.Group, of.Kind, &of.Namespace, of.Name, of.ClusterID, limit)
	if err != nil || answer.ConfigObject == nil || answer.ConfigObject.History == nil {
		return client.ObjectSteps{}, err
	}
	return *answer.ConfigObject.History, nil
}

// formerSteps are what was done to an object that is deleted, as the history of the whole
// configuration tells.
func formerSteps(ctx context.Context, s *session.Session, of client.Ref, limit int) ([]client.ObjectStep, error) {
	steps := []client.ObjectStep{}
	for step, err := range s.History(ctx, &client.HistoryFilter{Group: &of.Group, Kind: &of.Kind, Namespace: &of.Namespace, Name: &of.Name}) {
		if err != nil {
			return nil, err
		}
		for _, c := range step.Changes {
			if output.RefName(c.Object) == output.RefName(of) {
				steps = append(steps, client.ObjectStep{
					Revision: step.Revision, Author: step.Author, CreatedAt: &step.CreatedAt, Message: step.Message,
					Action: &c.Action, Manager: step.Manager,
				})
			}
		}
		if len(steps) >= limit {
			break
		}
	}
	return steps, nil
}

// didStep says what a step did, "-" where that is not known.
func didStep(step client.ObjectStep) string {
	if step.Action == nil {
		return "-"
	}
	return output.Did(*step.Action)
}
