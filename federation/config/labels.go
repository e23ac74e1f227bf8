package config

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// labelSets finds equal sets of labels among objects that come together, so that
// they share one map: a map of a single label takes over 300 bytes.
type labelSets struct {
	mu    sync.Mutex
	known map[string]map[string]string
}

func newLabelSets() *labelSets { return &labelSets{known: map[string]map[string]string{}} }

// shared returns the one map that is used for all equal ones. It is never written to.
func (l *labelSets) shared(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return labels
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text.WriteString(key + nul + labels[key] + nul)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first, found := l.known[text.String()]
	if !found {
		first = labels
		l.known[text.String()] = first
	}
	return first
}
