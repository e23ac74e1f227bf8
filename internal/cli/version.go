package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/version"
)

func versionCommand(io cmdutil.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cmdutil.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(io.Out, "isthmus %s (%s, %s/%s)\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
