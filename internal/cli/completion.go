package cli

import (
	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

func completionCommand(io cmdutil.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a script that completes command lines in a shell",
		Long:      "Print a script that completes command lines in a shell: commands, flags, and the kinds and names in the hub.",
		Example:   "  source <(isthmus completion bash)\n  isthmus completion zsh > \"${fpath[1]}/_isthmus\"\n  isthmus completion fish > ~/.config/fish/completions/isthmus.fish",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      cmdutil.Exactly(1, "the name of a shell: bash, zsh or fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(io.Out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(io.Out)
			case "fish":
				return cmd.Root().GenFishCompletion(io.Out, true)
			}
			return cmdutil.Usagef("there is no completion for %q; write bash, zsh or fish", args[0])
		},
	}
	return cmdutil.Finish(cmd)
}
