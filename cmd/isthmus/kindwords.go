package main

import (
	"context"
	"slices"
	"strings"

	"isthmus.dev/isthmus/client"
)

// What the hub shows beside the objects of its configuration.
const (
	hubServices = "services"
	hubClusters = "clusters"
	hubProxies  = "proxies"
	hubNetworks = "networks"
)

// hubWord is what the hub itself has under a word: the services, attached
// clusters, connected proxies and networks of the mesh. Objects whose kind has such a name
// are named with their group, as clusters.isthmus.dev.
func hubWord(word string) string {
	switch strings.ToLower(word) {
	case "service", "services", "svc":
		return hubServices
	case "cluster", "clusters":
		return hubClusters
	case "proxy", "proxies":
		return hubProxies
	case "network", "networks":
		return hubNetworks
	}
	return ""
}

// sort is a sort of things: one of the hub's own, or a kind of objects.
type sort struct {
	hub  string // hubServices, …; "": objects of kind
	kind client.Kind
}

func (s sort) namespaced() bool { return s.hub == hubServices || s.hub == "" && s.kind.Namespaced }

// plural is how the sort is spoken of.
func (s sort) plural() string {
	if s.hub != "" {
		return s.hub
	}
	return fullPlural(s.kind)
}

func fullPlural(k client.Kind) string { return k.Plural + "." + k.Group }

// vocabulary knows the kinds of a hub by all their names.
type vocabulary []client.Kind

func loadVocabulary(ctx context.Context, s *session) (vocabulary, error) {
	answer, err := client.Kinds(ctx, s)
	if err != nil {
		return nil, err
	}
	return answer.Kinds, nil
}

// sort finds what a word means: plural, singular, short name or kind, alone or
// with a group or a version and a group behind it.
func (v vocabulary) sort(word string) (sort, error) {
	if hub := hubWord(word); hub != "" {
		return sort{hub: hub}, nil
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
		return sort{}, usagef("unknown kind %q%s; \"isthmus api-resources\" lists the kinds", word, didYouMean(word, v.words()))
	case 1:
		return sort{kind: found[0]}, nil
	}
	names := make([]string, len(found))
	for i, k := range found {
		names[i] = fullPlural(k)
	}
	slices.Sort(names)
	text := strings.Join(names, " or ")
	if isCalled(found[0], "gateways") {
		text += `; "isthmus describe network NAME" shows the gateways of a network`
	}
	return sort{}, usagef("%q is the name of several kinds: write %s", word, text)
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

// refName is how an object is written: kind.group/namespace/name.
func refName(r client.Ref) string {
	name := strings.ToLower(r.Kind)
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.Namespace != "" {
		name += "/" + r.Namespace
	}
	return name + "/" + r.Name
}

func orEmpty(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}
