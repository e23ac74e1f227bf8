package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/federation/config/schema"
)

// didYouMean names the nearest of the known words, if one is near.
func didYouMean(word string, known []string) string {
	if near := schema.Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// flagMeant names the nearest flag of a command that has no flag of the given name.
func flagMeant(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return didYouMean("--"+unknown.GetSpecifiedName(), names)
}

func commandNames(of *cobra.Command) []string {
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// words are the names of all kinds by which somebody may have meant one.
func (v vocabulary) words() []string {
	words := []string{hubServices, "service", hubClusters, "cluster", hubProxies, "proxy", hubNetworks, "network"}
	for _, k := range v {
		words = append(words, k.Plural, strings.ToLower(k.Kind))
	}
	return words
}
