// Package cmdutil is what all commands share: their streams, arguments, errors and exit codes.
package cmdutil

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of every command.
const (
	ExitDone   = 0
	ExitFailed = 1 // refused or failed
	ExitUsage  = 2 // wrong usage
)

// Streams are where a command reads, and where it writes: data to Out, progress
// and warnings to Err. No In is an empty one.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// usageError is wrong usage: one line and exit code 2.
type usageError struct{ error }

// Usagef is an error of wrong usage.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// ExitCode tells an error on standard error, with what to do about it, and returns the exit
// code of its command.
func ExitCode(io Streams, err error) int {
	if err == nil {
		return ExitDone
	}
	var told Failed
	if errors.As(err, &told) && told.Text == "" {
		return told.Code
	}
	_, _ = fmt.Fprintln(io.Err, "isthmus: "+DescribeError(err)) // its own error cannot be shown
	if errors.As(err, &told) {
		return told.Code
	}
	var usage usageError
	if errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}

// NoArguments refuses arguments, and names the command that may be meant.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch {
	case cmd.HasSubCommands() && cmd.HasParent():
		return Usagef("unknown command %q of %q%s; see %q", args[0], cmd.CommandPath(), DidYouMean(args[0], commandNames(cmd)),
			cmd.CommandPath()+" --help")
	case valueApart(cmd) != "":
		flag := valueApart(cmd)
		return Usagef("%q accepts no argument %q; if it is the value of --%s, write --%s=%s; see %q", cmd.CommandPath(), args[0], flag, flag, args[0],
			cmd.CommandPath()+" --help")
	case cmd.Flags().Lookup("filename") != nil:
		return Usagef("%q accepts no argument %q; name files with -f; see %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")
	case cmd.HasParent():
		return Usagef("%q accepts no argument %q; see %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")
	}
	return Usagef("unknown command %q%s; see %q", args[0], DidYouMean(args[0], commandNames(cmd)), cmd.CommandPath()+" --help")
}

// valueApart is the flag whose value an argument may be: one that was given, needs no value, and has the one that it then has.
func valueApart(cmd *cobra.Command) (name string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal {
			name = f.Name
		}
	})
	return name
}

// Failed is a command that told on standard error what is wrong; the error is the
// last line.
type Failed struct {
	Code int
	Text string
}

// Error is part of error.
func (f Failed) Error() string { return f.Text }

// Finish makes a command one of the client's: wrong flags lead to its help.
func Finish(cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef("%w%s; see %q", err, flagMeant(cmd, err), cmd.CommandPath()+" --help")
	})
	return cmd
}
