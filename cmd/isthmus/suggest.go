package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/federation/config/schema"
)

// didYouMean names the nearest of the known words, if one is near.
func didYouMean(word string, known []string) string {
	if near := schema.Nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
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
