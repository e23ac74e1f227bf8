package resource

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

// completionTime is how long a shell waits at most for the hub.
const completionTime = time.Second

const maxCompletions = 500

// Complete completes a kind and then names, from the hub. A hub that does
// not answer in time completes nothing.
func Complete(r *session.Flags, io cmdutil.Streams) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		s, err := r.Open(io)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		words, err := Load(ctx, s)
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
func (v Vocabulary) all() []string {
	words := []string{Services, Clusters, Proxies, Networks}
	count := map[string]int{}
	for _, k := range v {
		count[k.Plural]++
	}
	for _, k := range v {
		if count[k.Plural] > 1 || HubWord(k.Plural) != "" {
			words = append(words, FullPlural(k))
			continue
		}
		words = append(words, k.Plural)
	}
	return words
}

func completionsOf(ctx context.Context, s *session.Session, cmd *cobra.Command, words Vocabulary, word string) []string {
	of, err := words.Type(word)
	if err != nil {
		return nil
	}
	namespace := s.Namespace
	if given := cmd.Flags().Lookup("namespace"); given != nil && given.Changed {
		namespace = given.Value.String()
	}
	var names []string
	if of.Hub != "" {
		for name, err := range hubNames(ctx, s, of.Hub, &namespace) {
			if err != nil || len(names) == maxCompletions {
				break
			}
			names = append(names, name)
		}
		return names
	}
	filter := &client.ConfigObjectFilter{Group: &of.Kind.Group, Kind: &of.Kind.Kind}
	if of.Kind.Namespaced {
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
func hubNames(ctx context.Context, s *session.Session, hub string, namespace *string) iter.Seq2[string, error] {
	switch hub {
	case Services:
		return namesOf(s.Services(ctx, &client.ServiceFilter{Namespace: namespace}), func(of client.ServiceSummary) string { return of.Hostname })
	case Clusters:
		return namesOf(s.Clusters(ctx), func(of client.ClusterSummary) string { return of.ClusterID })
	case Networks:
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
