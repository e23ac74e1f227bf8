// Command isthmus is the hub and its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// version is set by the build.
var version = "development"

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1 // refused or failed
	exitUsage  = 2 // wrong usage
)

func main() {
	adoptLogs(openLog(os.Stderr, logConfig{}).logger)
	os.Exit(run(untilSignal(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, adopt: adoptLogs}))
}

// adoptLogs has libraries that log on their own do it by the logger: client-go
// by klog, net/http and others by the log package.
func adoptLogs(to *slog.Logger) {
	slog.SetDefault(to)
	klog.SetSlogLogger(to)
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends; a second
// one ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx
}

// streams are where a command reads, and where it writes: data to out, progress
// and warnings to err. No in is an empty one.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// adopt has libraries use the log of the hub; nil: they do not.
	adopt func(*slog.Logger)
}

// usageError is wrong usage: one line and exit code 2.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, io streams) int {
	root := &cobra.Command{
		Use: "isthmus", Short: "A hub that federates the services of many clusters",
		SilenceErrors: true, SilenceUsage: true,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() && !strings.HasPrefix(args[0], "-") {
			return noArguments(cmd, args) // a word that is no command, with flags that root does not have
		}
		return usageError{err}
	})
	root.AddCommand(serveCommand(io), versionCommand(io))
	root.AddCommand(clientCommands(io, args)...)
	return exitCode(io, root.ExecuteContext(ctx))
}

func exitCode(io streams, err error) int {
	if err == nil {
		return exitDone
	}
	var told failed
	if errors.As(err, &told) && told.text == "" {
		return told.code
	}
	_, _ = fmt.Fprintln(io.err, "isthmus: "+describeError(err)) // nobody to tell if it fails
	if errors.As(err, &told) {
		return told.code
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch {
	case cmd.HasSubCommands() && cmd.HasParent():
		return usagef("unknown command %q of %q%s; see %q", args[0], cmd.CommandPath(), didYouMean(args[0], commandNames(cmd)), cmd.CommandPath()+" --help")
	case cmd.Flags().Lookup("filename") != nil:
		return usagef("%q takes no argument %q; name files with -f; see %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")
	case cmd.HasParent():
		return usagef("%q takes no argument %q; see %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")
	}
	return usagef("unknown command %q%s; see %q", args[0], didYouMean(args[0], commandNames(cmd)), cmd.CommandPath()+" --help")
}

// onceOnly refuses a flag that is given twice (B-F1).
func onceOnly(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { f.Value = &onceValue{Value: f.Value} })
}

type onceValue struct {
	pflag.Value
	given bool
}

// Set is part of pflag.Value.
func (v *onceValue) Set(s string) error {
	if v.given {
		return errors.New("the flag is given twice")
	}
	v.given = true
	return v.Value.Set(s)
}
