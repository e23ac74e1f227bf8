// Package cli is the command line: the root command, and the commands that have no room
// of their own.
package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/apply"
	"isthmus.dev/isthmus/internal/cli/cluster"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/describe"
	"isthmus.dev/isthmus/internal/cli/get"
	"isthmus.dev/isthmus/internal/cli/proxy"
	"isthmus.dev/isthmus/internal/cli/session"
)

// clientCommands are those that speak with a hub, or help to. To complete a
// command line (args), cobra reads its flags twice.
func clientCommands(io cmdutil.Streams, args []string) []*cobra.Command {
	all := slices.Concat(apply.Commands(io), get.Commands(io), describe.Commands(io), []*cobra.Command{
		cluster.Command(io), proxy.Command(io), caCommand(io), session.ContextCommand(io), queryCommand(io),
		completionCommand(io), versionCommand(io),
	})
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return all
	}
	for _, cmd := range all {
		cmdutil.Singly(cmd)
	}
	return all
}

// Run executes one command line and returns its exit code. More are commands beside those of this room.
func Run(ctx context.Context, args []string, io cmdutil.Streams, more ...*cobra.Command) int {
	root := &cobra.Command{
		Use: "isthmus", Short: "A hub that federates the services of many clusters",
		SilenceErrors: true, SilenceUsage: true,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() && !strings.HasPrefix(args[0], "-") {
			return cmdutil.NoArguments(cmd, args) // a word that is not a command, with flags that root does not have
		}
		return cmdutil.Usagef("%w", err)
	})
	root.AddCommand(more...)
	root.AddCommand(clientCommands(io, args)...)
	return cmdutil.ExitCode(io, root.ExecuteContext(ctx))
}
