package main

import (
	"context"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func rollbackCommand(io streams) *cobra.Command {
	var r remote
	var w waiting
	var to, dry, message, format string
	cmd := &cobra.Command{
		Use: "rollback --to REVISION", Short: "Restore the configuration of a revision", Args: noArguments,
		Long:    "Restore the configuration of an earlier revision, as one new revision. The history is kept.",
		Example: "  isthmus history\n  isthmus rollback --to 41 --dry-run\n  isthmus rollback --to 41 -m \"v2 was too slow\" --wait",
	}
	f := cmd.Flags()
	r.bind(f)
	w.bind(f)
	f.StringVar(&to, "to", "", "`REVISION` to restore; \"isthmus history\" lists them")
	bindDryRun(f, &dry)
	f.StringVarP(&message, "message", "m", "", "the reason, for the history")
	f.StringVarP(&format, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, _ []string) error {
		if to == "" {
			return usagef("--to is missing: name a revision; \"isthmus history\" lists them")
		}
		if err := checkRevision("to", to); err != nil {
			return err
		}
		if err := checkDryRun(dry); err != nil {
			return err
		}
		if err := w.check(); err != nil {
			return err
		}
		o, err := parseOutput(format, "table", "name", "json", "yaml")
		if err != nil {
			return err
		}
		only := dryRun(dry) == dryServer
		return sendChange(ctx, s, &w, o, func(ctx context.Context, wait *client.WaitInput, key *string) (client.Outcome, error) {
			return s.Rollback(ctx, client.RollbackInput{To: to, DryRun: &only, Message: orNil(message), WaitFor: wait, IdempotencyKey: key}, o.isWhole())
		})
	})
	return finish(cmd)
}
