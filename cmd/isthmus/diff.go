package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

// The exit codes of diff, as those of other programs of the name.
const (
	diffDifferent = 1
	diffFailed    = 2
)

func diffCommand(io streams) *cobra.Command {
	var r remote
	var a applyFlags
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show what apply would change", Args: noArguments,
		Long: `Show what apply would change, with a dry run of the hub. Exit code 0: nothing
differs; 1: something differs; 2: an error.`,
		Example: "  isthmus diff -f config/ -R\n  isthmus diff -f config/ -R --set shop --prune",
	}
	r.bind(cmd.Flags())
	a.bindShared(cmd)
	a.dryRun, a.share = string(dryServer), 1
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.given = cmd.Flags().Changed("namespace")
		different, err := a.diff(cmd.Context(), &r, io)
		if err == nil && different {
			return failed{code: diffDifferent}
		}
		if err != nil {
			return failed{code: diffFailed, text: describeError(err)}
		}
		return nil
	}
	return finish(cmd)
}

func (a *applyFlags) diff(ctx context.Context, r *remote, io streams) (different bool, err error) {
	if _, err := a.check(); err != nil {
		return false, err
	}
	files, err := a.manifests(io)
	if err != nil {
		return false, err
	}
	s, err := r.open(io)
	if err != nil {
		return false, err
	}
	defer s.Close()
	ctx, cancel := s.within(ctx)
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

func printDiff(s *session, of client.Outcome) (different bool, err error) {
	if err := warn(s.io, of); err != nil {
		return false, err
	}
	for _, c := range of.Changes {
		if c.Action == client.ChangeActionUnchanged {
			continue
		}
		different = true
		text := fmt.Sprintf("%s would be %s\n%s", refName(c.Object), did(c.Action), s.look.diff(orEmpty(c.Diff)))
		if _, err := fmt.Fprintln(s.io.out, strings.TrimRight(text, "\n")); err != nil {
			return true, err
		}
	}
	return different, nil
}
