package apply

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

type waitFlags struct {
	resource.Scope
	until, revision string
}

// lastRevision is the word for the newest revision.
const lastRevision = "last"

func waitCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var w waitFlags
	cmd := &cobra.Command{
		Use: "wait KIND/NAME… | --revision REVISION", Short: "Wait until proxies have an object or a revision, or an object is deleted",
		Example: `  isthmus wait vs/web -n shop
  isthmus wait vs/web dr/web -n shop --for delivered
  isthmus wait --revision last --timeout 2m
  isthmus wait vs/web -n shop --for deleted`,
		ValidArgsFunction: resource.Complete(&r, io),
	}
	f := cmd.Flags()
	r.Bind(f)
	w.Bind(f)
	f.StringVar(&w.until, "for", forAcked,
		"`STATE` to wait for: acked (every affected proxy accepted it), delivered (it was sent to every affected proxy) or deleted")
	f.StringVar(&w.revision, "revision", "", "wait for the objects of this `REVISION`, or of the last one, that still exist")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		w.Given = f.Changed("namespace")
		return w.run(ctx, s, args)
	})
	return cmdutil.Finish(cmd)
}

func (w *waitFlags) check(args []string) error {
	if (len(args) == 0) == (w.revision == "") {
		return cmdutil.Usagef("\"isthmus wait\" needs either objects or --revision; see \"isthmus wait --help\"")
	}
	if err := cmdutil.OneOf("for", w.until, forAcked, forDelivered, forDeleted); err != nil {
		return err
	}
	if w.revision != "" && w.until == forDeleted {
		return cmdutil.Usagef("--for deleted waits for objects that are named; omit --revision")
	}
	if w.revision == lastRevision {
		return nil
	}
	return checkRevision("revision", w.revision)
}

func (w *waitFlags) run(ctx context.Context, s *session.Session, args []string) error {
	if err := w.check(args); err != nil {
		return err
	}
	ctx, cancel := s.Within(ctx)
	defer cancel()
	refs, err := w.refs(ctx, s, args)
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return newProgress(s).last("nothing to wait for: the revision left no object")
	}
	return awaitObjects(ctx, s, &objectWait{until: w.until, left: refs, all: len(refs), mayGo: w.revision != ""})
}

// refs are the objects that are waited for; of a revision those that it left.
func (w *waitFlags) refs(ctx context.Context, s *session.Session, args []string) ([]client.Ref, error) {
	if w.revision != "" {
		return w.ofRevision(ctx, s)
	}
	targets, err := resource.Targets(ctx, s, args, *w.In(s))
	if err != nil {
		return nil, err
	}
	var refs []client.Ref
	for _, t := range targets {
		if t.Hub != "" || len(t.Names) == 0 {
			return nil, cmdutil.Usagef("name objects of the configuration: KIND/NAME or KIND NAME")
		}
		for _, n := range t.Names {
			found, err := resource.Refs(ctx, s, t, n)
			switch {
			case err == nil:
				refs = append(refs, found...)
			case resource.IsNotFound(err) && w.until == forDeleted:
				refs = append(refs, resource.Everywhere(t, n)) // it is gone already
			default:
				return nil, err
			}
		}
	}
	return refs, nil
}

// ofRevision are the objects that a revision left.
func (w *waitFlags) ofRevision(ctx context.Context, s *session.Session) ([]client.Ref, error) {
	wanted, _ := strconv.ParseInt(w.revision, 10, 64) // checked before
	for step, err := range s.History(ctx, nil) {
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(step.Revision, 10, 64)
		if w.revision != lastRevision && n > wanted {
			continue
		}
		if err != nil || w.revision != lastRevision && n < wanted {
			break
		}
		refs := []client.Ref{}
		for _, c := range step.Changes {
			if c.Action != client.ChangeActionDelete {
				refs = append(refs, c.Object)
			}
		}
		return refs, nil
	}
	if w.revision == lastRevision {
		return nil, fmt.Errorf("nothing was changed yet; \"isthmus apply\" makes the first revision")
	}
	return nil, fmt.Errorf("the history has no revision %s; \"isthmus history\" lists them", w.revision)
}
