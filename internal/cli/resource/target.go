package resource

import (
	"context"
	"strings"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Target is some resources of one type, by name, or all of them.
type Target struct {
	Type
	Word  string
	Names []Name
}

// Hub is the target of everything that the hub has of its own under one of its words.
func Hub(word string) Target { return Target{Type: Type{Hub: word}, Word: word} }

// Name names one thing of a sort.
type Name struct{ Namespace, Name string }

// Targets is Vocabulary.Targets in the words of the hub.
func Targets(ctx context.Context, s *session.Session, args []string, namespace string) ([]Target, error) {
	words, err := Load(ctx, s)
	if err != nil {
		return nil, err
	}
	return words.Targets(args, namespace)
}

// Targets reads KIND, KIND NAME…, KIND,KIND and KIND/NAME or KIND/NAMESPACE/NAME….
func (v Vocabulary) Targets(args []string, namespace string) ([]Target, error) {
	if strings.Contains(args[0], "/") {
		return v.slashed(args, namespace)
	}
	words := strings.Split(args[0], ",")
	if len(words) > 1 && len(args) > 1 {
		return nil, cmdutil.Usagef("several kinds at once have no names; write KIND/NAME for each")
	}
	var all []Target
	for _, word := range words {
		s, err := v.Type(word)
		if err != nil {
			return nil, err
		}
		t := Target{Type: s, Word: word}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") && s.Hub == "" {
				return nil, cmdutil.Usagef("%q: write KIND/NAME for each, or the kind once and names without a slash", name)
			}
			t.Names = append(t.Names, Name{Namespace: t.within(namespace), Name: name})
		}
		all = append(all, t)
	}
	return all, nil
}

func (v Vocabulary) slashed(args []string, namespace string) ([]Target, error) {
	var all []Target
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		s, err := v.Type(word)
		if err != nil {
			return nil, err
		}
		t := Target{Type: s, Word: word}
		one := Name{Namespace: t.within(namespace), Name: name}
		if inside, rest, ok := strings.Cut(name, "/"); ok && s.Namespaced() {
			one = Name{Namespace: inside, Name: rest}
		}
		if one.Name == "" || strings.Contains(one.Name, "/") && s.Hub != Proxies {
			return nil, cmdutil.Usagef("%q is neither KIND/NAME nor KIND/NAMESPACE/NAME", arg)
		}
		t.Names = append(t.Names, one)
		if last := len(all) - 1; last >= 0 && all[last].Plural() == t.Plural() {
			all[last].Names = append(all[last].Names, one)
			continue
		}
		all = append(all, t)
	}
	return all, nil
}

// within is the namespace in which things of the sort are looked for.
func (s Type) within(namespace string) string {
	if !s.Namespaced() {
		return ""
	}
	return namespace
}
