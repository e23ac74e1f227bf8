// Package resource parses the kinds and names on a command line and resolves them.
package resource

import (
	"context"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

// What the hub shows beside the objects of its configuration.
const (
	Services = "services"
	Clusters = "clusters"
	Proxies  = "proxies"
	Networks = "networks"
)

// HubWord is what the hub itself has under a word: the services, attached
// clusters, connected proxies and networks of the mesh. Objects whose kind has such a name
// are named with their group, as clusters.isthmus.dev.
func HubWord(word string) string {
	switch strings.ToLower(word) {
	case "service", "services", "svc":
		return Services
	case "cluster", "clusters":
		return Clusters
	case "proxy", "proxies":
		return Proxies
	case "network", "networks":
		return Networks
	}
	return ""
}

// Type is a type of resource: one of the hub's own, or a kind of object.
type Type struct {
	Hub  string // Services, …; "": objects of Kind
	Kind client.Kind
}

// Namespaced reports whether its things are in namespaces.
func (s Type) Namespaced() bool { return s.Hub == Services || s.Hub == "" && s.Kind.Namespaced }

// Plural returns the plural of the type.
func (s Type) Plural() string {
	if s.Hub != "" {
		return s.Hub
	}
	return FullPlural(s.Kind)
}

// FullPlural is the plural of a kind with its group.
func FullPlural(k client.Kind) string { return k.Plural + "." + k.Group }

// Vocabulary knows the kinds of a hub by all their names.
type Vocabulary []client.Kind

// Load asks the hub for its kinds.
func Load(ctx context.Context, s *session.Session) (Vocabulary, error) {
	answer, err := client.Kinds(ctx, s)
	if err != nil {
		return nil, err
	}
	return answer.Kinds, nil
}

// Type finds what a word means: plural, singular, short name or kind, alone or
// with a group or a version and a group behind it.
func (v Vocabulary) Type(word string) (Type, error) {
	if hub := HubWord(word); hub != "" {
		return Type{Hub: hub}, nil
	}
	base, rest, _ := strings.Cut(strings.ToLower(word), ".")
	var found []client.Kind
	for _, k := range v {
		if isCalled(k, base) && isOf(k, rest) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return Type{}, cmdutil.Usagef("unknown kind %q%s; \"isthmus api-resources\" lists the kinds", word, v.meant(word))
	case 1:
		return Type{Kind: found[0]}, nil
	}
	names := make([]string, len(found))
	for i, k := range found {
		names[i] = FullPlural(k)
	}
	slices.Sort(names)
	text := strings.Join(names, " or ")
	if isCalled(found[0], "gateways") {
		text += `; "isthmus describe network NAME" shows the gateways of a network`
	}
	return Type{}, cmdutil.Usagef("%q is the name of several kinds: write %s", word, text)
}

func isCalled(k client.Kind, word string) bool {
	return word == strings.ToLower(k.Kind) || word == k.Plural || slices.Contains(k.ShortNames, word)
}

func isOf(k client.Kind, rest string) bool {
	if rest == "" || rest == k.Group {
		return true
	}
	version, group, _ := strings.Cut(rest, ".")
	return group == k.Group && slices.Contains(k.Versions, version)
}

// meant suggests what an unknown word means: a short name whose plural it is, or the nearest name.
func (v Vocabulary) meant(word string) string {
	short, plural := strings.CutSuffix(strings.ToLower(word), "s")
	if plural && (HubWord(short) != "" || slices.ContainsFunc(v, func(k client.Kind) bool { return isCalled(k, short) })) {
		return cmdutil.DidYouMean(word, []string{short})
	}
	return cmdutil.DidYouMean(word, v.words())
}

// words are the names of all kinds by which a user may mean one.
func (v Vocabulary) words() []string {
	words := []string{Services, "service", Clusters, "cluster", Proxies, "proxy", Networks, "network"}
	for _, k := range v {
		words = append(words, k.Plural, strings.ToLower(k.Kind))
	}
	return words
}
