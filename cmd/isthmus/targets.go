package main

import (
	"strings"
)

// target is a sort of things with names, or all of them.
type target struct {
	sort
	word  string
	names []named
}

// named names one thing of a sort.
type named struct{ namespace, name string }

// targets reads KIND, KIND NAME…, KIND,KIND and KIND/NAME or KIND/NAMESPACE/NAME….
func (v vocabulary) targets(args []string, namespace string) ([]target, error) {
	if strings.Contains(args[0], "/") {
		return v.slashed(args, namespace)
	}
	words := strings.Split(args[0], ",")
	if len(words) > 1 && len(args) > 1 {
		return nil, usagef("several kinds at once have no names; write KIND/NAME for each")
	}
	var all []target
	for _, word := range words {
		s, err := v.sort(word)
		if err != nil {
			return nil, err
		}
		t := target{sort: s, word: word}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") && s.hub == "" {
				return nil, usagef("%q: write KIND/NAME for each, or the kind once and names without a slash", name)
			}
			t.names = append(t.names, named{namespace: t.within(namespace), name: name})
		}
		all = append(all, t)
	}
	return all, nil
}

func (v vocabulary) slashed(args []string, namespace string) ([]target, error) {
	var all []target
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		s, err := v.sort(word)
		if err != nil {
			return nil, err
		}
		t := target{sort: s, word: word}
		one := named{namespace: t.within(namespace), name: name}
		if inside, rest, ok := strings.Cut(name, "/"); ok && s.namespaced() {
			one = named{namespace: inside, name: rest}
		}
		if one.name == "" || strings.Contains(one.name, "/") && s.hub != hubProxies {
			return nil, usagef("%q is neither KIND/NAME nor KIND/NAMESPACE/NAME", arg)
		}
		t.names = append(t.names, one)
		if last := len(all) - 1; last >= 0 && all[last].plural() == t.plural() {
			all[last].names = append(all[last].names, one)
			continue
		}
		all = append(all, t)
	}
	return all, nil
}

// within is the namespace in which things of the sort are looked for.
func (s sort) within(namespace string) string {
	if !s.namespaced() {
		return ""
	}
	return namespace
}
