package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

type historyFlags struct {
	scope
	limit  int
	output string
}

func historyCommand(io streams) *cobra.Command {
	var r remote
	var h historyFlags
	cmd := &cobra.Command{
		Use: "history [KIND NAME | KIND/NAME]", Short: "Show the changes of the configuration, or of one object",
		Example:           "  isthmus history\n  isthmus history vs web -n shop\n  isthmus history -o json --limit 5",
		Args:              atMost(2),
		ValidArgsFunction: completeObjects(&r, io),
	}
	f := cmd.Flags()
	r.bind(f)
	h.bind(f)
	f.IntVar(&h.limit, "limit", 20, "the number of revisions, newest first")
	f.StringVarP(&h.output, "output", "o", "table", "`FORMAT`: table, yaml, json or jsonpath=TEMPLATE")
	cmd.RunE = withHub(&r, io, func(ctx context.Context, s *session, args []string) error {
		h.given = f.Changed("namespace")
		return h.run(ctx, s, args)
	})
	return finish(cmd)
}

func (h *historyFlags) run(ctx context.Context, s *session, args []string) error {
	o, err := parseOutput(h.output, "table", "yaml", "json", "jsonpath")
	if err != nil {
		return err
	}
	if h.limit < 1 || h.limit > 500 {
		return usagef("--limit: %d is not from 1 to 500", h.limit)
	}
	if len(args) == 0 {
		return h.ofAll(ctx, s, o)
	}
	t, n, err := objectNamed(ctx, s, args, *h.in(s))
	if err != nil {
		return err
	}
	return h.ofOne(ctx, s, o, client.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: n.namespace, Name: n.name})
}

// objectNamed reads arguments that name one object of the configuration.
func objectNamed(ctx context.Context, s *session, args []string, namespace string) (target, named, error) {
	words, err := loadVocabulary(ctx, s)
	if err != nil {
		return target{}, named{}, err
	}
	targets, err := words.targets(args, namespace)
	if err != nil {
		return target{}, named{}, err
	}
	if len(targets) != 1 || len(targets[0].names) != 1 {
		return target{}, named{}, usagef("name one object: KIND NAME or KIND/NAME")
	}
	if targets[0].hub != "" {
		return target{}, named{}, usagef("%s are a view of the hub, not objects of the configuration; name a kind of \"isthmus api-resources\" with its group, such as clusters.isthmus.dev", targets[0].hub)
	}
	return targets[0], targets[0].names[0], nil
}

func (h *historyFlags) ofAll(ctx context.Context, s *session, o output) error {
	steps := []client.ConfigStep{}
	for step, err := range s.History(ctx, nil) {
		if err != nil {
			return err
		}
		if steps = append(steps, step); len(steps) == h.limit {
			break
		}
	}
	if o.sort != "table" {
		return printSteps(s.io, o, steps)
	}
	t := table{to: s.io.out, heads: []string{"REVISION", "TIME", "AUTHOR", "MANAGER", "CHANGES", "MESSAGE"}}
	for _, step := range steps {
		t.add(step.Revision, step.CreatedAt.Format(time.RFC3339), orDash(orEmpty(step.Author)), orDash(orEmpty(step.Manager)), changesText(step.Changes), orEmpty(step.Message))
	}
	return t.flush()
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
		parts = append(parts, refName(c.Object)+" "+did(c.Action))
	}
	return orDash(strings.Join(parts, ", "))
}

func (h *historyFlags) ofOne(ctx context.Context, s *session, o output, of client.Ref) error {
	found, err := stepsOf(ctx, s, of, h.limit)
	if err != nil {
		return err
	}
	if found.Compacted && len(found.Nodes) < h.limit {
		if _, err := fmt.Fprintf(s.io.err, "older revisions of %s were compacted\n", refName(of)); err != nil {
			return err
		}
	}
	if o.sort != "table" {
		return printSteps(s.io, o, found.Nodes)
	}
	return printStepTable(s.io, found.Nodes)
}

func printSteps[T any](io streams, o output, steps []T) error {
	values := make([]any, len(steps))
	for i, step := range steps {
		value, err := shownAs("Revision", step)
		if err != nil {
			return err
		}
		values[i] = value
	}
	return o.printValue(io.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": values})
}

func printStepTable(io streams, steps []client.ObjectStep) error {
	t := table{to: io.out, heads: []string{"REVISION", "TIME", "ACTION", "AUTHOR", "MANAGER", "MESSAGE"}}
	for _, step := range steps {
		t.add(step.Revision, orDash(moment(step.CreatedAt)), didStep(step), orDash(orEmpty(step.Author)), orDash(orEmpty(step.Manager)), orEmpty(step.Message))
	}
	return t.flush()
}

// stepsOf are what was done to an object, the newest first; of one that is deleted,
// what the history of the whole configuration tells.
func stepsOf(ctx context.Context, s *session, of client.Ref, limit int) (client.ObjectSteps, error) {
	answer, err := client.ObjectHistory(ctx, s, of.Group, of.Kind, &of.Namespace, of.Name, limit)
	if err != nil {
		return client.ObjectSteps{}, err
	}
	if answer.ConfigObject != nil && answer.ConfigObject.History != nil {
		return *answer.ConfigObject.History, nil
	}
	var steps []client.ObjectStep
	for step, err := range s.History(ctx, &client.HistoryFilter{Group: &of.Group, Kind: &of.Kind, Namespace: &of.Namespace, Name: &of.Name}) {
		if err != nil {
			return client.ObjectSteps{}, err
		}
		for _, c := range step.Changes {
			if refName(c.Object) == refName(of) {
				steps = append(steps, client.ObjectStep{
					Revision: step.Revision, Author: step.Author, CreatedAt: &step.CreatedAt, Message: step.Message, Action: &c.Action, Manager: step.Manager,
				})
			}
		}
		if len(steps) >= limit {
			break
		}
	}
	if len(steps) == 0 {
		return client.ObjectSteps{}, fmt.Errorf("%s does not exist and is not in the history; \"isthmus history\" lists all changes", refName(of))
	}
	return client.ObjectSteps{Nodes: steps}, nil
}

// didStep says what a step did, "-" where that is not known.
func didStep(step client.ObjectStep) string {
	if step.Action == nil {
		return "-"
	}
	return did(*step.Action)
}
