package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(io.out, "isthmus %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// sourceRevision is the commit that the program was built from; empty where the
// build did not note it.
func sourceRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
