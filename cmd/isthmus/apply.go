package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

// applyFlags are those of apply, and of diff as far as they matter there.
type applyFlags struct {
	sources
	waiting
	scope
	compare                       bool
	manager, set, message, ticket string
	force, prune                  bool
	dryRun, expected, output      string
}

func (a *applyFlags) bindShared(cmd *cobra.Command) {
	f := cmd.Flags()
	a.sources.bind(f)
	f.StringVarP(&a.namespace, "namespace", "n", "", "`NAMESPACE` of manifests without one (default: that of the context, or "+defaultNamespace+"); a manifest with another one is rejected")
	f.BoolVar(&a.compare, "compare-resource-version", false, "reject a manifest whose metadata.resourceVersion is not the revision of the object (default: ignore the field)")
	f.StringVar(&a.manager, "field-manager", "", "`NAME` of the owner of the fields in the manifests (default isthmus)")
	f.BoolVar(&a.force, "force-conflicts", false, "take over fields that other managers own")
	f.StringVar(&a.set, "set", "", "`NAME` for these manifests; every object is labelled with it")
	f.BoolVar(&a.prune, "prune", false, "delete the objects of the set that are not among the manifests")
}

func applyCommand(io streams) *cobra.Command {
	var r remote
	var a applyFlags
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Merge manifests into the configuration", Args: noArguments,
		Long: `Merge manifests into the configuration as kubectl apply --server-side does. All of
them become one revision, or none do. Every problem is reported at once, with file,
line and column.`,
		Example: `  isthmus apply -f web.yaml
  isthmus apply -f config/ -R --dry-run=server
  kustomize build . | isthmus apply -f - --set shop --prune
  isthmus apply -f web.yaml --wait --timeout 2m
  isthmus apply -f web.yaml --expected-revision 41 -m "more weight for v2"`,
	}
	f := cmd.Flags()
	r.bind(f)
	a.bindShared(cmd)
	a.waiting.bind(f)
	f.StringVar(&a.dryRun, "dry-run", string(dryNone), "only report what would happen: `WHO` is none, server (the default without a value) or client (without a hub)")
	f.Lookup("dry-run").NoOptDefVal = string(dryServer)
	f.StringVarP(&a.message, "message", "m", "", "the reason, for the history")
	f.StringVar(&a.ticket, "ticket", "", "apply exactly the result of the dry run with this ticket")
	f.StringVar(&a.expected, "expected-revision", "", "fail unless the configuration is at this `REVISION`")
	f.StringVarP(&a.output, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.given = cmd.Flags().Changed("namespace")
		return a.run(cmd.Context(), &r, io)
	}
	return finish(cmd)
}

func (a *applyFlags) run(ctx context.Context, r *remote, io streams) error {
	o, err := a.check()
	if err != nil {
		return err
	}
	files, err := a.manifests(io)
	if err != nil {
		return err
	}
	if dryRun(a.dryRun) == dryClient {
		return checkAlone(io, o, files)
	}
	s, err := r.open(io)
	if err != nil {
		return err
	}
	defer s.Close()
	return sendChange(ctx, s, &a.waiting, o, func(ctx context.Context, wait *client.WaitInput, key *string) (client.Outcome, error) {
		input := a.input(s, files)
		input.WaitFor, input.IdempotencyKey = wait, key
		return s.Apply(ctx, input, o.isWhole())
	})
}

func (a *applyFlags) check() (output, error) {
	if err := oneOf("dry-run", a.dryRun, string(dryNone), string(dryServer), string(dryClient)); err != nil {
		return output{}, err
	}
	if a.prune && a.set == "" {
		return output{}, usagef("--prune deletes the objects of a set that are not among the manifests; name the set with --set")
	}
	if err := a.waiting.check(); err != nil {
		return output{}, err
	}
	if err := checkRevision("expected-revision", a.expected); err != nil {
		return output{}, err
	}
	o, err := parseOutput(a.output, "table", "name", "json", "yaml")
	if err == nil && dryRun(a.dryRun) == dryClient && o.isWhole() {
		err = usagef("-o %s shows what the hub would do; write --dry-run=server", o.sort)
	}
	return o, err
}

func checkRevision(flag, text string) error {
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
		return usagef("--%s: %q is not a revision; \"isthmus history\" lists them", flag, text)
	}
	return nil
}

// manifests reads the manifests and refuses those of other namespaces than the
// one that was given.
func (a *applyFlags) manifests(io streams) ([]client.ManifestInput, error) {
	files, err := a.read(io.in)
	if err != nil || !a.given {
		return files, err
	}
	objects, _ := documentsOf(files) // the hub tells what cannot be read
	for _, o := range objects {
		if o.ref.Namespace != "" && o.ref.Namespace != a.namespace {
			wrong := o.problem("metadata.namespace", "NAMESPACE_MISMATCH", fmt.Sprintf(
				"the object is of namespace %q, and -n says %q: leave -n out, or correct the manifest", o.ref.Namespace, a.namespace))
			return nil, failed{code: exitFailed, text: wrong.String()}
		}
	}
	return files, nil
}

// input is the request without what differs between its repetitions.
func (a *applyFlags) input(s *session, files []client.ManifestInput) client.ApplyInput {
	dry := dryRun(a.dryRun) == dryServer
	return client.ApplyInput{
		Files: files, DryRun: &dry, Namespace: a.in(s), CompareResourceVersion: &a.compare, FieldManager: orNil(a.manager), Force: &a.force, Set: orNil(a.set), Prune: &a.prune,
		Ticket: orNil(a.ticket), Message: orNil(a.message), ExpectedRevision: orNil(a.expected),
	}
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// checkAlone is a dry run without a hub: the manifests are read and validated.
func checkAlone(io streams, o output, files []client.ManifestInput) error {
	seen, err := inspect(files)
	if err != nil {
		return err
	}
	if err := errors.Join(seen.tellFindings(io), tellProblems(io, seen.problems)); err != nil {
		return err
	}
	for _, object := range seen.objects {
		text := refName(object.ref)
		if o.sort != "name" {
			text += " valid (client dry run)"
		}
		if _, err := fmt.Fprintln(io.out, text); err != nil {
			return err
		}
	}
	return nil
}
