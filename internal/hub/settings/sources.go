package settings

import (
	"fmt"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/hub/sources"
)

// Unread is configuration that is named and not read: its source is not one of the hub.
type Unread struct {
	Setting string // that names it
	Source  string
}

// chooseSources decides which sources the hub reads, of those that the config file may list. Without
// a list these are all that have settings. An empty list means the first one that has something to
// read: servers of configuration, else files, else custom resources.
func (s *Settings) chooseSources(listed []string) error {
	known := sources.Listed()
	switch {
	case listed == nil:
		return nil
	case len(listed) == 0:
		first := slices.IndexFunc(known, func(k sources.Kind) bool { return k.Given(s.Sources) })
		listed = []string{known[first].Name}
	}
	if err := checkSources(listed, known, s.Sources); err != nil {
		return err
	}
	for _, k := range known {
		if slices.Contains(listed, k.Name) {
			continue
		}
		if k.Setting != "" && k.Given(s.Sources) {
			s.Unread = append(s.Unread, Unread{Setting: k.Setting, Source: k.Name})
		}
		k.Off(&s.Sources)
	}
	return nil
}

func checkSources(listed []string, known []sources.Kind, given sources.Settings) error {
	for i, source := range listed {
		at := slices.IndexFunc(known, func(k sources.Kind) bool { return k.Name == source })
		switch {
		case at < 0:
			var names []string
			for _, k := range known {
				names = append(names, k.Name)
			}
			return fmt.Errorf("sources[%d]: %q is not known; use %s", i, source, strings.Join(names, ", "))
		case slices.Contains(listed[:i], source):
			return fmt.Errorf("sources[%d]: %s is there twice", i, source)
		case !known[at].Given(given):
			return fmt.Errorf("sources[%d]: %s needs %s, which is missing", i, source, known[at].Setting)
		}
	}
	return nil
}
