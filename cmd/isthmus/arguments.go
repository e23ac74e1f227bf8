package main

import (
	"github.com/spf13/cobra"
)

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("%q needs %s; see %q", cmd.CommandPath(), what, cmd.CommandPath()+" --help")
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return usagef("%q takes no argument %q; see %q", cmd.CommandPath(), args[n], cmd.CommandPath()+" --help")
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usagef("%q needs %s; see %q", cmd.CommandPath(), what, cmd.CommandPath()+" --help")
	}
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usagef("--%s: %q is not one of %s", flag, value, quotedList(allowed))
}
