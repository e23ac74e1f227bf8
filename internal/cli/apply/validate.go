package apply

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
)

func validateCommand(io cmdutil.Streams) *cobra.Command {
	var from sources
	var format string
	cmd := &cobra.Command{
		Use: "validate -f FILE", Short: "Check manifests without a hub", Args: cmdutil.NoArguments,
		Long: `Check manifests without a hub, with the same rules and schemas as a hub of the
same version. Parts that are valid and have no effect are reported on standard
error. To check references to other objects, use isthmus apply --dry-run=server.`,
		Example: "  isthmus validate -f config/ -R\n  isthmus validate -f web.yaml -o json",
	}
	from.bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := cmdutil.OneOf("output", format, "text", "json"); err != nil {
			return err
		}
		files, err := from.read(io.In)
		if err != nil {
			return err
		}
		return validate(io, format, files)
	}
	return cmdutil.Finish(cmd)
}

func validate(io cmdutil.Streams, format string, files []client.ManifestInput) error {
	seen, err := inspect(files)
	if err != nil {
		return err
	}
	if format == "json" {
		text := output.JSON(map[string]any{
			"files": len(files), "objects": len(seen.objects),
			"problems": append([]output.Problem{}, seen.problems...), "findings": append([]output.Problem{}, seen.findings...),
		}, "  ")
		if _, err := fmt.Fprintln(io.Out, text); err != nil {
			return err
		}
		return problemsError(seen.problems)
	}
	for _, p := range seen.problems {
		if _, err := fmt.Fprintln(io.Out, p); err != nil {
			return err
		}
	}
	if err := errors.Join(seen.tellFindings(io), problemsError(seen.problems)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "%s in %s: valid\n", output.Counted(len(seen.objects), "object"), output.Counted(len(files), "file"))
	return err
}

// printProblems prints problems to standard error.
func printProblems(io cmdutil.Streams, problems []output.Problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(io.Err, p); err != nil {
			return err
		}
	}
	return problemsError(problems)
}

func problemsError(problems []output.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: output.Counted(len(problems), "problem") + "; correct the manifests and repeat"}
}
