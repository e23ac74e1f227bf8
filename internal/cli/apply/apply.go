// Package apply has the commands that change the configuration, and those that check or
// wait for a change.
package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

// applyFlags are those of apply, and of diff as far as they matter there.
type applyFlags struct {
	sources
	waiting
	resource.Scope
	compare                       bool
	manager, set, message, ticket string
	force, prune                  bool
	dryRun, expected, output      string
}

func (a *applyFlags) bindShared(cmd *cobra.Command) {
	f := cmd.Flags()
	a.sources.bind(f)
	f.StringVarP(&a.Namespace, "namespace", "n", "", "`NAMESPACE` of manifests without one (default: that of the context, or "+
		session.DefaultNamespace+"); a manifest with another one is rejected")
	f.BoolVar(&a.compare, "compare-resource-version", false,
		"reject a manifest whose metadata.resourceVersion is not the revision of the object (default: ignore the field)")
	f.StringVar(&a.manager, "field-manager", "", "`NAME` of the owner of the fields in the manifests (default isthmus)")
	f.BoolVar(&a.force, "force-conflicts", false, "take over fields that other managers own")
	f.StringVar(&a.set, "set", "", "`NAME` for these manifests; every object is labelled with it")
	f.BoolVar(&a.prune, "prune", false, "delete the objects of the set that are not among the manifests")
}

// Commands change the configuration, or help to.
func Commands(io cmdutil.Streams) []*cobra.Command {
	return []*cobra.Command{applyCommand(io), diffCommand(io), validateCommand(io), deleteCommand(io), rollbackCommand(io), waitCommand(io)}
}

func applyCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var a applyFlags
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Merge manifests into the configuration", Args: cmdutil.NoArguments,
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
	r.Bind(f)
	a.bindShared(cmd)
	a.waiting.bind(f)
	f.StringVar(&a.dryRun, "dry-run", string(dryNone),
		"only report what would happen; `MODE` can be none, server (the default without a value) or client (without a hub)")
	f.Lookup("dry-run").NoOptDefVal = string(dryServer)
	f.StringVarP(&a.message, "message", "m", "", "the reason, for the history")
	f.StringVar(&a.ticket, "ticket", "", "apply exactly the result of the dry run with this ticket")
	f.StringVar(&a.expected, "expected-revision", "", "fail unless the configuration is at this `REVISION`")
	f.StringVarP(&a.output, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.Given = cmd.Flags().Changed("namespace")
		return a.run(cmd.Context(), &r, io)
	}
	return cmdutil.Finish(cmd)
}

func (a *applyFlags) run(ctx context.Context, r *session.Flags, io cmdutil.Streams) error {
	o, err := a.check()
	if err != nil {
		return err
	}
	files, err := a.manifests(io)
	if err != nil {
		return err
	}
	files, err = a.withoutEmptyLists(files, io)
	if err != nil || len(files) == 0 {
		return err
	}
	if dryRun(a.dryRun) == dryClient {
		return checkAlone(io, o, files)
	}
	s, err := r.Open(io)
	if err != nil {
		return err
	}
	defer s.Close()
	s.AllowFor(sizeOf(files))
	return sendChange(ctx, s, &a.waiting, o, func(ctx context.Context, wait *client.WaitInput, key *string) (client.Outcome, error) {
		input := a.input(s, files)
		input.WaitFor, input.IdempotencyKey = wait, key
		return s.Apply(ctx, input, o.IsWhole())
	})
}

func (a *applyFlags) check() (output.Format, error) {
	if err := cmdutil.OneOf("dry-run", a.dryRun, string(dryNone), string(dryServer), string(dryClient)); err != nil {
		return output.Format{}, err
	}
	if a.prune && a.set == "" {
		return output.Format{}, cmdutil.Usagef("--prune deletes the objects of a set that are not among the manifests; name the set with --set")
	}
	if err := a.waiting.check(); err != nil {
		return output.Format{}, err
	}
	if err := checkRevision("expected-revision", a.expected); err != nil {
		return output.Format{}, err
	}
	o, err := output.ParseFormat(a.output, "table", "name", "json", "yaml")
	if err == nil && dryRun(a.dryRun) == dryClient && o.IsWhole() {
		err = cmdutil.Usagef("-o %s shows what the hub would do; write --dry-run=server", o.Name)
	}
	return o, err
}

func checkRevision(flag, text string) error {
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
		return cmdutil.Usagef("--%s: %q is not a revision; \"isthmus history\" lists them", flag, text)
	}
	return nil
}

// manifests reads the manifests and refuses those of other namespaces than the
// one that was given.
func (a *applyFlags) manifests(io cmdutil.Streams) ([]client.ManifestInput, error) {
	files, err := a.read(io.In)
	if err != nil || !a.Given {
		return files, err
	}
	objects, _ := documentsOf(files) // the hub tells what cannot be read
	for _, o := range objects {
		if o.ref.Namespace != "" && o.ref.Namespace != a.Namespace {
			wrong := o.problem("metadata.namespace", "NAMESPACE_MISMATCH", fmt.Sprintf(
				"the object is of namespace %q, and -n says %q: leave -n out, or correct the manifest", o.ref.Namespace, a.Namespace))
			return nil, cmdutil.Failed{Code: cmdutil.ExitFailed, Text: wrong.String()}
		}
	}
	return files, nil
}

// withoutEmptyLists takes out the files that are a list without items, as "isthmus get" writes
// a backup of an empty hub, and says so. With --prune such a file would delete a whole set: the
// hub refuses it, as it refuses a file that is empty for no visible reason.
func (a *applyFlags) withoutEmptyLists(files []client.ManifestInput, io cmdutil.Streams) ([]client.ManifestInput, error) {
	if a.prune {
		return files, nil
	}
	var left []client.ManifestInput
	for _, file := range files {
		if !isEmptyList(file.Content) {
			left = append(left, file)
			continue
		}
		if _, err := fmt.Fprintf(io.Err, "%s: the list has no items: there is nothing to apply\n", file.Name); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// isEmptyList reports whether a text is one v1 List without items.
func isEmptyList(text string) bool {
	var list struct {
		APIVersion, Kind string
		Items            *[]any
	}
	if len(text) > 1<<10 { // of comments, too
		return false
	}
	err := yaml.UnmarshalStrict([]byte(text), &list)
	return err == nil && list.APIVersion == "v1" && list.Kind == "List" && list.Items != nil && len(*list.Items) == 0
}

// input is the request without what differs between its repetitions.
func (a *applyFlags) input(s *session.Session, files []client.ManifestInput) client.ApplyInput {
	dry := dryRun(a.dryRun) == dryServer
	return client.ApplyInput{
		Files: files, DryRun: &dry, Namespace: a.In(s), CompareResourceVersion: &a.compare, FieldManager: output.OrNil(a.manager),
		Force: &a.force, Set: output.OrNil(a.set), Prune: &a.prune,
		Ticket: output.OrNil(a.ticket), Message: output.OrNil(a.message), ExpectedRevision: output.OrNil(a.expected),
	}
}

// checkAlone is a dry run without a hub: the manifests are read and validated.
func checkAlone(io cmdutil.Streams, o output.Format, files []client.ManifestInput) error {
	seen, err := inspect(files)
	if err != nil {
		return err
	}
	if err := errors.Join(seen.tellFindings(io), printProblems(io, seen.problems)); err != nil {
		return err
	}
	for _, object := range seen.objects {
		text := output.RefName(object.ref)
		if o.Name != "name" {
			text += " valid (client dry run)"
		}
		if _, err := fmt.Fprintln(io.Out, text); err != nil {
			return err
		}
	}
	return nil
}
