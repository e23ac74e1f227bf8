package cmdutil

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exactly refuses another number of arguments; what says what is needed.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return Usagef("%q needs %s; see %q", cmd.CommandPath(), what, cmd.CommandPath()+" --help")
	}
}

// AtMost refuses arguments beyond the first n.
func AtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return Usagef("%q accepts no argument %q; see %q", cmd.CommandPath(), args[n], cmd.CommandPath()+" --help")
	}
}

// AtLeastOne refuses a command line without arguments; what says what is needed.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return Usagef("%q needs %s; see %q", cmd.CommandPath(), what, cmd.CommandPath()+" --help")
	}
}

// OneOf checks the value of a flag.
func OneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return Usagef("--%s: %q is not one of %s", flag, value, QuotedList(allowed))
}

// QuotedList are words in quotes, with commas between them.
func QuotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
