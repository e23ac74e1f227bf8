package testbed

import (
	"strings"
	"sync"
)

// LogText is a log that may be read while it is written.
type LogText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *LogText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *LogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
