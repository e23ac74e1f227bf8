package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// The exit codes of diff, as those of other programs of the name.
const (
	DiffDifferent = 1
	DiffFailed    = 2
)

func diffCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var a applyFlags
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show what apply would change", Args: cmdutil.NoArguments,
		Long: `Show what apply would change, with a dry run of the hub. Exit code 0: nothing
differs; 1: something differs; 2: an error.`,
		Example: "  isthmus diff -f config/ -R\n  isthmus diff -f config/ -R --set shop --prune",
	}
	r.Bind(cmd.Flags())
	a.bindShared(cmd)
	a.dryRun, a.share = string(dryServer), 1
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.Given = cmd.Flags().Changed("namespace")
		different, err := a.diff(cmd.Context(), &r, io)
		if err == nil && different {
			return cmdutil.Failed{Code: DiffDifferent}
		}
		if err != nil {
			return cmdutil.Failed{Code: DiffFailed, Text: cmdutil.DescribeError(err)}
		}
		return nil
	}
	return cmdutil.Finish(cmd)
}

func (a *applyFlags) diff(ctx context.Context, r *session.Flags, io cmdutil.Streams) (different bool, err error) {
	if _, err := a.check(); err != nil {
		return false, err
	}
	files, err := a.manifests(io)
	if err != nil {
		return false, err
	}
	s, err := r.Open(io)
	if err != nil {
		return false, err
	}
	defer s.Close()
	s.AllowFor(sizeOf(files))
	ctx, cancel := s.Within(ctx)
	defer cancel()
	of, err := s.Apply(ctx, a.input(s, files), true)
	if err != nil {
		return false, err
	}
	if len(of.UserErrors) > 0 {
		return false, refused(io, of.UserErrors)
	}
	return printDiff(s, of)
}

func printDiff(s *session.Session, of client.Outcome) (different bool, err error) {
	if err := warn(s.IO, of); err != nil {
		return false, err
	}
	for _, c := range of.Changes {
		if c.Action == client.ChangeActionUnchanged {
			continue
		}
		different = true
		text := fmt.Sprintf("%s would be %s\n%s", output.RefName(c.Object), output.Did(c.Action), s.Look.Diff(output.OrEmpty(c.Diff)))
		if _, err := fmt.Fprintln(s.IO.Out, strings.TrimRight(text, "\n")); err != nil {
			return true, err
		}
	}
	return different, nil
}
