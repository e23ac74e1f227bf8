package session

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
)

func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(file.Contexts))
	for i, c := range file.Contexts {
		names[i] = c.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// ContextCommand shows and chooses contexts.
func ContextCommand(io cmdutil.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Show and choose the hubs of the config file", Args: cmdutil.NoArguments,
		Long: `Show and choose the hubs of the config file.

The file is ISTHMUS_CONFIG, or isthmus/config.yaml of the user's configuration
folder:

  current: prod
  contexts:
  - name: prod
    server: https://hub.example:8080
    namespace: shop
    tls: {ca: ca.pem, cert: me.pem, key: me-key.pem}`,
		Example: "  isthmus context list\n  isthmus context use prod\n  isthmus get clusters --context staging",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var r Flags
	show := &cobra.Command{
		Use: "show [NAME]", Short: "Show the server that commands use, from flags, environment and file", Args: cmdutil.AtMost(1),
		Example: "  isthmus context show",
		RunE:    func(_ *cobra.Command, args []string) error { return showContext(io, r, args) },
	}
	r.Bind(show.Flags())
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the contexts", Args: cmdutil.NoArguments, Example: "  isthmus context list",
			RunE: func(*cobra.Command, []string) error { return listContexts(io) },
		},
		&cobra.Command{
			Use: "use NAME", Short: "Make a context the current one", Args: cmdutil.Exactly(1, "the name of a context"),
			Example: "  isthmus context use prod",
			RunE:    func(_ *cobra.Command, args []string) error { return useContext(io, args[0]) },
		},
		show,
	)
	for _, sub := range cmd.Commands() {
		cmdutil.Finish(sub)
		sub.ValidArgsFunction = completeContexts
	}
	return cmdutil.Finish(cmd)
}

func listContexts(io cmdutil.Streams) error {
	file, err := readContexts()
	if err != nil {
		return err
	}
	if len(file.Contexts) == 0 {
		_, err := fmt.Fprintf(io.Err, "there are no contexts; write them to %s, see \"isthmus context --help\"\n", file.path)
		return err
	}
	t := output.Table{To: io.Out, Heads: []string{"CURRENT", "NAME", "SERVER", "NAMESPACE"}}
	for _, c := range file.Contexts {
		mark := ""
		if c.Name == file.Current {
			mark = "*"
		}
		t.Add(mark, c.Name, cmp.Or(c.Server, defaultServer), cmp.Or(c.Namespace, DefaultNamespace))
	}
	return t.Flush()
}

func useContext(io cmdutil.Streams, name string) error {
	file, err := readContexts()
	if err != nil {
		return err
	}
	if _, err := file.choose(name); err != nil {
		return err
	}
	text, err := os.ReadFile(file.path)
	if err != nil {
		return fmt.Errorf("changing the current context: %w", err)
	}
	if err := replaceFile(file.path, withCurrent(text, name)); err != nil {
		return fmt.Errorf("changing the current context: %w", err)
	}
	_, err = fmt.Fprintf(io.Err, "the current context is %s\n", name)
	return err
}

// replaceFile writes a file whole or not at all; a symbolic link stays one.
func replaceFile(path string, content []byte) (err error) {
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // The first error counts.
		}
	}()
	_, err = f.Write(content)
	if err != nil {
		_ = f.Close() // The first error counts.
		return err
	}
	err = f.Chmod(info.Mode().Perm())
	if err != nil {
		_ = f.Close() // The first error counts.
		return err
	}
	err = f.Close()
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func showContext(io cmdutil.Streams, r Flags, args []string) error {
	if len(args) == 1 {
		r.context = args[0]
	}
	to, err := r.place()
	if err != nil {
		return err
	}
	return output.PrintLines(io.Out,
		output.Line{"server", to.Server}, output.Line{"namespace", cmp.Or(to.Namespace, DefaultNamespace)},
		output.Line{"tls ca", to.TLS.CA}, output.Line{"tls cert", to.TLS.Cert}, output.Line{"tls key", to.TLS.Key},
	)
}
