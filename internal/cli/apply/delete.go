package apply

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

type deleteFlags struct {
	resource.Scope
	sources
	waiting
	dryRun, message, expected, output string
	ignoreNotFound                    bool
}

func deleteCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var d deleteFlags
	cmd := &cobra.Command{
		Use: "delete KIND NAME… | KIND/NAME… | -f FILE", Short: "Delete objects of the configuration",
		Long: "Delete objects of the configuration. All of them are deleted in one revision, or none are.",
		Example: `  isthmus delete virtualservice web -n shop
  isthmus delete vs/web dr/web -n shop
  isthmus delete -f config/ -R --ignore-not-found
  isthmus delete vs web -n shop --dry-run`,
		ValidArgsFunction: resource.Complete(&r, io),
	}
	f := cmd.Flags()
	r.Bind(f)
	d.Bind(f)
	d.sources.bind(f)
	d.waiting.bind(f)
	bindDryRun(f, &d.dryRun)
	f.StringVarP(&d.message, "message", "m", "", "the reason, for the history")
	f.StringVar(&d.expected, "expected-revision", "", "fail unless the configuration is at this `REVISION`")
	f.BoolVar(&d.ignoreNotFound, "ignore-not-found", false, "treat objects that do not exist as deleted")
	f.StringVarP(&d.output, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		d.Given = f.Changed("namespace")
		return d.run(ctx, s, args)
	})
	return cmdutil.Finish(cmd)
}

func (d *deleteFlags) run(ctx context.Context, s *session.Session, args []string) error {
	o, err := d.check(args)
	if err != nil {
		return err
	}
	objects, err := d.objects(ctx, s, args)
	if err != nil {
		return err
	}
	dry := dryRun(d.dryRun) == dryServer
	return sendChange(ctx, s, &d.waiting, o, func(ctx context.Context, wait *client.WaitInput, key *string) (client.Outcome, error) {
		input := client.DeleteInput{
			Objects: objects, DryRun: &dry, Message: output.OrNil(d.message), ExpectedRevision: output.OrNil(d.expected),
			WaitFor: wait, IdempotencyKey: key,
		}
		of, err := s.Delete(ctx, input, o.IsWhole())
		if err != nil || !d.ignoreNotFound || !onlyNotFound(of.UserErrors) {
			return of, err
		}
		objects = without(objects, of.UserErrors)
		if len(objects) == 0 {
			return client.Outcome{DryRun: dry}, nil
		}
		input.Objects = objects
		return s.Delete(ctx, input, o.IsWhole())
	})
}

func (d *deleteFlags) check(args []string) (output.Format, error) {
	if (len(args) == 0) == (len(d.files) == 0) {
		return output.Format{}, cmdutil.Usagef("\"isthmus delete\" needs either a kind with names or -f; see \"isthmus delete --help\"")
	}
	if err := checkDryRun(d.dryRun); err != nil {
		return output.Format{}, err
	}
	if err := d.waiting.check(); err != nil {
		return output.Format{}, err
	}
	if err := checkRevision("expected-revision", d.expected); err != nil {
		return output.Format{}, err
	}
	return output.ParseFormat(d.output, "table", "name", "json", "yaml")
}

// objects are those that arguments or manifests name.
func (d *deleteFlags) objects(ctx context.Context, s *session.Session, args []string) ([]client.ObjectRefInput, error) {
	if len(d.files) > 0 {
		return d.ofManifests(s.IO)
	}
	ctx, cancel := s.Within(ctx)
	defer cancel()
	targets, err := resource.Targets(ctx, s, args, *d.In(s))
	if err != nil {
		return nil, err
	}
	var all []client.ObjectRefInput
	for _, t := range targets {
		switch {
		case t.Hub != "":
			return nil,
				cmdutil.Usagef("%s are a view of the hub and cannot be deleted; name a kind of \"isthmus api-resources\" with its group, such as clusters.isthmus.dev", t.Hub)
		case len(t.Names) == 0:
			return nil, cmdutil.Usagef("no name is given; \"isthmus get %[2]s\" lists the %[1]s", t.Plural(), t.Word)
		}
		for _, n := range t.Names {
			all = append(all, client.ObjectRefInput{Group: t.Kind.Group, Kind: t.Kind.Kind, Namespace: &n.Namespace, Name: n.Name})
		}
	}
	return all, nil
}

// ofManifests are the objects that manifests define. Only their names matter, but
// what cannot be read strictly might name others.
func (d *deleteFlags) ofManifests(io cmdutil.Streams) ([]client.ObjectRefInput, error) {
	files, err := d.read(io.In)
	if err != nil {
		return nil, err
	}
	found, problems := documentsOf(files)
	if err := printProblems(io, problems); err != nil {
		return nil, err
	}
	all := make([]client.ObjectRefInput, len(found))
	for i, object := range found {
		all[i] = client.ObjectRefInput{Group: object.ref.Group, Kind: object.ref.Kind, Namespace: &object.ref.Namespace, Name: object.ref.Name}
	}
	return all, nil
}

func onlyNotFound(errs []client.UserError) bool {
	return len(errs) > 0 && !slices.ContainsFunc(errs, func(e client.UserError) bool { return e.Code != "NOT_FOUND" || e.Object == nil })
}

func without(objects []client.ObjectRefInput, errs []client.UserError) []client.ObjectRefInput {
	return slices.DeleteFunc(slices.Clone(objects), func(o client.ObjectRefInput) bool {
		return slices.ContainsFunc(errs, func(e client.UserError) bool {
			return e.Object.Group == o.Group && e.Object.Kind == o.Kind && e.Object.Namespace == output.OrEmpty(o.Namespace) &&
				e.Object.Name == o.Name
		})
	})
}
