package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

type deleteFlags struct {
	scope
	sources
	waiting
	dryRun, message, expected, output string
	ignoreNotFound                    bool
}

func deleteCommand(io streams) *cobra.Command {
	var r remote
	var d deleteFlags
	cmd := &cobra.Command{
		Use: "delete KIND NAME… | KIND/NAME… | -f FILE", Short: "Delete objects of the configuration",
		Long: "Delete objects of the configuration. All of them are deleted in one revision, or none are.",
		Example: `  isthmus delete virtualservice web -n shop
  isthmus delete vs/web dr/web -n shop
  isthmus delete -f config/ -R --ignore-not-found
  isthmus delete vs web -n shop --dry-run`,
		ValidArgsFunction: completeObjects(&r, io),
	}
	f := cmd.Flags()
	r.bind(f)
	d.scope.bind(f)
	d.sources.bind(f)
	d.waiting.bind(f)
	bindDryRun(f, &d.dryRun)
	f.StringVarP(&d.message, "message", "m", "", "the reason, for the history")
	f.StringVar(&d.expected, "expected-revision", "", "fail unless the configuration is at this `REVISION`")
	f.BoolVar(&d.ignoreNotFound, "ignore-not-found", false, "treat objects that do not exist as deleted")
	f.StringVarP(&d.output, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, args []string) error {
		d.given = f.Changed("namespace")
		return d.run(ctx, s, args)
	})
	return finish(cmd)
}

func (d *deleteFlags) run(ctx context.Context, s *session, args []string) error {
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
			Objects: objects, DryRun: &dry, Message: orNil(d.message), ExpectedRevision: orNil(d.expected), WaitFor: wait, IdempotencyKey: key,
		}
		of, err := s.Delete(ctx, input, o.isWhole())
		if err != nil || !d.ignoreNotFound || !onlyNotFound(of.UserErrors) {
			return of, err
		}
		objects = without(objects, of.UserErrors)
		if len(objects) == 0 {
			return client.Outcome{DryRun: dry}, nil
		}
		input.Objects = objects
		return s.Delete(ctx, input, o.isWhole())
	})
}

func (d *deleteFlags) check(args []string) (output, error) {
	if (len(args) == 0) == (len(d.files) == 0) {
		return output{}, usagef("\"isthmus delete\" needs either a kind with names or -f; see \"isthmus delete --help\"")
	}
	if err := checkDryRun(d.dryRun); err != nil {
		return output{}, err
	}
	if err := d.waiting.check(); err != nil {
		return output{}, err
	}
	if err := checkRevision("expected-revision", d.expected); err != nil {
		return output{}, err
	}
	return parseOutput(d.output, "table", "name", "json", "yaml")
}

// objects are those that arguments or manifests name.
func (d *deleteFlags) objects(ctx context.Context, s *session, args []string) ([]client.ObjectRefInput, error) {
	if len(d.files) > 0 {
		return d.ofManifests(s.io)
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	words, err := loadVocabulary(ctx, s)
	if err != nil {
		return nil, err
	}
	targets, err := words.targets(args, *d.in(s))
	if err != nil {
		return nil, err
	}
	var all []client.ObjectRefInput
	for _, t := range targets {
		switch {
		case t.hub != "":
			return nil, usagef("%s are a view of the hub and cannot be deleted; name a kind of \"isthmus api-resources\" with its group, such as clusters.isthmus.dev", t.hub)
		case len(t.names) == 0:
			return nil, usagef("no name is given; \"isthmus get %[2]s\" lists the %[1]s", t.plural(), t.word)
		}
		for _, n := range t.names {
			all = append(all, client.ObjectRefInput{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: &n.namespace, Name: n.name})
		}
	}
	return all, nil
}

// ofManifests are the objects that manifests define. Only their names matter, but
// what cannot be read strictly might name others.
func (d *deleteFlags) ofManifests(io streams) ([]client.ObjectRefInput, error) {
	files, err := d.read(io.in)
	if err != nil {
		return nil, err
	}
	found, problems := documentsOf(files)
	if err := tellProblems(io, problems); err != nil {
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
			return e.Object.Group == o.Group && e.Object.Kind == o.Kind && e.Object.Namespace == orEmpty(o.Namespace) && e.Object.Name == o.Name
		})
	})
}
