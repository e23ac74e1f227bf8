package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
)

func completionCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a script that completes command lines in a shell",
		Long:      "Print a script that completes command lines in a shell: commands, flags, and the kinds and names in the hub.",
		Example:   "  source <(isthmus completion bash)\n  isthmus completion zsh > \"${fpath[1]}/_isthmus\"\n  isthmus completion fish > ~/.config/fish/completions/isthmus.fish",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      exactly(1, "the name of a shell: bash, zsh or fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(io.out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(io.out)
			case "fish":
				return cmd.Root().GenFishCompletion(io.out, true)
			}
			return usagef("there is no completion for %q; write bash, zsh or fish", args[0])
		},
	}
	return finish(cmd)
}

// completionTime is how long a shell waits at most for the hub.
const completionTime = time.Second

const maxCompletions = 500

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeObjects completes a kind and then names, from the hub. A hub that does
// not answer in time completes nothing.
func completeObjects(r *remote, io streams) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		s, err := r.open(io)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		words, err := loadVocabulary(ctx, s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		kind, _, slashed := strings.Cut(begun, "/")
		switch {
		case slashed:
			return prefixed(kind+"/", completionsOf(ctx, s, cmd, words, kind)), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 0:
			return words.all(), cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(args[0], "/"):
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completionsOf(ctx, s, cmd, words, args[0]), cobra.ShellCompDirectiveNoFileComp
	}
}

func prefixed(prefix string, names []string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// all are the words for everything that the hub has.
func (v vocabulary) all() []string {
	words := []string{hubServices, hubClusters, hubProxies, hubNetworks}
	count := map[string]int{}
	for _, k := range v {
		count[k.Plural]++
	}
	for _, k := range v {
		if count[k.Plural] > 1 || hubWord(k.Plural) != "" {
			words = append(words, fullPlural(k))
			continue
		}
		words = append(words, k.Plural)
	}
	return words
}

func completionsOf(ctx context.Context, s *session, cmd *cobra.Command, words vocabulary, word string) []string {
	of, err := words.sort(word)
	if err != nil {
		return nil
	}
	namespace := s.namespace
	if given := cmd.Flags().Lookup("namespace"); given != nil && given.Changed {
		namespace = given.Value.String()
	}
	var names []string
	if of.hub != "" {
		for name, err := range hubNames(ctx, s, of.hub, &namespace) {
			if err != nil || len(names) == maxCompletions {
				break
			}
			names = append(names, name)
		}
		return names
	}
	filter := &client.ConfigObjectFilter{Group: &of.kind.Group, Kind: &of.kind.Kind}
	if of.kind.Namespaced {
		filter.Namespace = &namespace
	}
	for o, err := range s.Objects(ctx, filter) {
		if err != nil || len(names) == maxCompletions {
			break
		}
		names = append(names, o.Name)
	}
	return names
}

// hubNames yields the names of what the hub has of its own.
func hubNames(ctx context.Context, s *session, hub string, namespace *string) iter.Seq2[string, error] {
	switch hub {
	case hubServices:
		return namesOf(s.Services(ctx, &client.ServiceFilter{Namespace: namespace}), func(of client.ServiceSummary) string { return of.Hostname })
	case hubClusters:
		return namesOf(s.Clusters(ctx), func(of client.ClusterSummary) string { return of.ClusterID })
	case hubNetworks:
		return namesOf(s.Networks(ctx), func(of client.NetworkSummary) string { return of.NetworkID })
	}
	return namesOf(s.Proxies(ctx, nil), func(of client.ProxySummary) string { return of.NodeID })
}

func namesOf[T any](from iter.Seq2[T, error], name func(T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for of, err := range from {
			if !yield(name(of), err) {
				return
			}
		}
	}
}

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
