package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

type waitFlags struct {
	scope
	until, revision string
}

func waitCommand(io streams) *cobra.Command {
	var r remote
	var w waitFlags
	cmd := &cobra.Command{
		Use: "wait KIND/NAME… | --revision REVISION", Short: "Wait until proxies have objects or a revision, or objects are gone",
		Example: `  isthmus wait vs/web -n shop
  isthmus wait --revision 42 --timeout 2m
  isthmus wait vs/web -n shop --for deleted`,
		ValidArgsFunction: completeObjects(&r, io),
	}
	f := cmd.Flags()
	r.bind(f)
	w.bind(f)
	f.StringVar(&w.until, "for", "acked", "`STATE` to wait for: acked (every proxy concerned took what was made of it) or deleted")
	f.StringVar(&w.revision, "revision", "", "wait for all that this `REVISION` of the configuration changed")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, args []string) error {
		w.given = f.Changed("namespace")
		return w.run(ctx, s, args)
	})
	return finish(cmd)
}

func (w *waitFlags) run(ctx context.Context, s *session, args []string) error {
	if (len(args) == 0) == (w.revision == "") {
		return usagef("\"isthmus wait\" wants either objects or --revision; see \"isthmus wait --help\"")
	}
	if err := oneOf("for", w.until, "acked", "deleted"); err != nil {
		return err
	}
	if err := checkRevision("revision", w.revision); err != nil {
		return err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	refs, err := w.refs(ctx, s, args)
	if err != nil {
		return err
	}
	p := &progress{session: s, began: time.Now()}
	defer p.done()
	for {
		left, err := w.left(ctx, s, refs)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && left == "":
			return p.last("done")
		case err == nil:
			p.tell(left)
		}
		if !rest(ctx, 300*time.Millisecond) {
			p.done()
			return fmt.Errorf("%w; wait longer with --timeout, or look with \"isthmus describe\" and \"isthmus get proxies\"", context.Cause(ctx))
		}
	}
}

func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refs are the objects that are waited for; of a revision those that it left.
func (w *waitFlags) refs(ctx context.Context, s *session, args []string) ([]client.Ref, error) {
	if w.revision != "" {
		return w.ofRevision(ctx, s)
	}
	words, err := s.vocabulary(ctx)
	if err != nil {
		return nil, err
	}
	targets, err := words.targets(args, *w.in(s))
	if err != nil {
		return nil, err
	}
	var refs []client.Ref
	for _, t := range targets {
		if t.hub != "" || len(t.names) == 0 {
			return nil, usagef("name objects of the configuration: KIND/NAME or KIND NAME")
		}
		for _, n := range t.names {
			refs = append(refs, client.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: n.namespace, Name: n.name})
		}
	}
	return refs, nil
}

func (w *waitFlags) ofRevision(ctx context.Context, s *session) ([]client.Ref, error) {
	wanted, _ := strconv.ParseInt(w.revision, 10, 64) // checked before
	for step, err := range s.History(ctx) {
		if err != nil {
			return nil, err
		}
		if n, err := strconv.ParseInt(step.Revision, 10, 64); err != nil || n < wanted {
			break
		}
		if step.Revision != w.revision {
			continue
		}
		refs := []client.Ref{}
		for _, c := range step.Changes {
			if c.Action != client.ChangeActionDelete {
				refs = append(refs, c.Object)
			}
		}
		return refs, nil
	}
	return nil, fmt.Errorf("the history has no revision %s; \"isthmus history\" lists them", w.revision)
}

// left says what is still waited for, or "".
func (w *waitFlags) left(ctx context.Context, s *session, refs []client.Ref) (string, error) {
	for _, of := range refs {
		answer, err := client.Object(ctx, s, of.Group, of.Kind, &of.Namespace, of.Name, nil)
		if err != nil {
			return "", err
		}
		o := answer.ConfigObject
		switch {
		case o == nil && (w.until == "deleted" || w.revision != ""):
			continue
		case o == nil:
			return "", fmt.Errorf("there is no %s; \"isthmus get\" lists what there is, -n names its namespace", refName(of))
		case w.until == "deleted":
			return refName(of) + " is still there", nil
		case o.Status.Pending == nil:
			return "", fmt.Errorf("this hub does not know how far %s is with proxies; look with \"isthmus get proxies\"", refName(of))
		case *o.Status.Rejected > 0 && *o.Status.Pending == 0:
			return "", fmt.Errorf("%s: %s; \"isthmus describe %s %s%s\" has the proxies' words",
				refName(of), progressOf(o.Status.Acked, o.Status.Rejected, o.Status.Pending), of.Kind, of.Name, namespaceFlag(of.Namespace))
		case *o.Status.Pending > 0:
			return refName(of) + " is " + progressOf(o.Status.Acked, o.Status.Rejected, o.Status.Pending), nil
		}
	}
	return "", nil
}

func namespaceFlag(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}
