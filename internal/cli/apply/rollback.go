package apply

import (
	"context"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

func rollbackCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var w waiting
	var to, dry, message, format string
	cmd := &cobra.Command{
		Use: "rollback --to REVISION", Short: "Restore the configuration of a revision", Args: cmdutil.NoArguments,
		Long:    "Restore the configuration of an earlier revision, as one new revision. The history is kept.",
		Example: "  isthmus history\n  isthmus rollback --to 41 --dry-run\n  isthmus rollback --to 41 -m \"v2 was too slow\" --wait",
	}
	f := cmd.Flags()
	r.Bind(f)
	w.bind(f)
	f.StringVar(&to, "to", "", "`REVISION` to restore; \"isthmus history\" lists them")
	bindDryRun(f, &dry)
	f.StringVarP(&message, "message", "m", "", "the reason, for the history")
	f.StringVarP(&format, "output", "o", "", "`FORMAT`: name, json or yaml (default: one line per object)")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, _ []string) error {
		if to == "" {
			return cmdutil.Usagef("--to is missing: name a revision; \"isthmus history\" lists them")
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
		o, err := output.ParseFormat(format, "table", "name", "json", "yaml")
		if err != nil {
			return err
		}
		only := dryRun(dry) == dryServer
		return sendChange(ctx, s, &w, o, func(ctx context.Context, wait *client.WaitInput, key *string) (client.Outcome, error) {
			return s.Rollback(ctx, client.RollbackInput{
				To: to, DryRun: &only, Message: output.OrNil(message), WaitFor: wait,
				IdempotencyKey: key,
			}, o.IsWhole())
		})
	})
	return cmdutil.Finish(cmd)
}
