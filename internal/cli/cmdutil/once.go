package cmdutil

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OnceOnly refuses a flag that is given twice (B-F1).
func OnceOnly(flags *pflag.FlagSet) {
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

// Singly refuses flags that are given twice where one value is meant.
func Singly(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, many := f.Value.(pflag.SliceValue); !many {
			f.Value = &onceValue{Value: f.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		Singly(sub)
	}
}
