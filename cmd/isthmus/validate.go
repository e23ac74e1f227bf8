package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func validateCommand(io streams) *cobra.Command {
	var from sources
	var format string
	cmd := &cobra.Command{
		Use: "validate -f FILE", Short: "Check manifests without a hub", Args: noArguments,
		Long: `Check manifests without a hub, with the same rules and schemas as a hub of the
same version. Parts that are valid and have no effect are reported on standard
error. To check references to other objects, use isthmus apply --dry-run=server.`,
		Example: "  isthmus validate -f config/ -R\n  isthmus validate -f web.yaml -o json",
	}
	from.bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := oneOf("output", format, "text", "json"); err != nil {
			return err
		}
		files, err := from.read(io.in)
		if err != nil {
			return err
		}
		return validate(io, format, files)
	}
	return finish(cmd)
}

func validate(io streams, format string, files []client.ManifestInput) error {
	seen, err := inspect(files)
	if err != nil {
		return err
	}
	if format == "json" {
		text := jsonText(map[string]any{
			"files": len(files), "objects": len(seen.objects),
			"problems": append([]problem{}, seen.problems...), "findings": append([]problem{}, seen.findings...),
		}, "  ")
		if _, err := fmt.Fprintln(io.out, text); err != nil {
			return err
		}
		return problemsError(seen.problems)
	}
	for _, p := range seen.problems {
		if _, err := fmt.Fprintln(io.out, p); err != nil {
			return err
		}
	}
	if err := errors.Join(seen.tellFindings(io), problemsError(seen.problems)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "%s in %s: valid\n", counted(len(seen.objects), "object"), counted(len(files), "file"))
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// tellProblems tells problems on standard error.
func tellProblems(io streams, problems []problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(io.err, p); err != nil {
			return err
		}
	}
	return problemsError(problems)
}

func problemsError(problems []problem) error {
	if len(problems) == 0 {
		return nil
	}
	return failed{code: exitFailed, text: counted(len(problems), "problem") + "; correct the manifests and repeat"}
}
