package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
)

// stage is what the testbed asks of a test, for a program: what is cleaned up is
// cleaned up when the demo ends.
type stage struct {
	testing.TB // for what the testbed does not use
	out        io.Writer

	mu     sync.Mutex
	ends   []func()
	failed bool
}

func (s *stage) Helper()                  {}
func (s *stage) Name() string             { return "demo" }
func (s *stage) Context() context.Context { return context.Background() }
func (s *stage) Log(...any)               {}
func (s *stage) Logf(string, ...any)      {}

// Failed is true once something went wrong: then logs of programs are kept.
func (s *stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *stage) Error(args ...any) { s.Errorf("%s", fmt.Sprint(args...)) }

func (s *stage) Errorf(format string, args ...any) {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "demo: "+format+"\n", args...) // its own error cannot be shown
}

func (s *stage) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }

// Fatalf ends the goroutine that called it, as in a test.
func (s *stage) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s *stage) Cleanup(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, end)
}

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "isthmus-demo-")
	if err != nil {
		s.Fatalf("making a folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // leftovers are in the system's temporary folder
	return dir
}

// end cleans up, the latest first.
func (s *stage) end() {
	for {
		s.mu.Lock()
		if len(s.ends) == 0 {
			s.mu.Unlock()
			return
		}
		last := s.ends[len(s.ends)-1]
		s.ends = s.ends[:len(s.ends)-1]
		s.mu.Unlock()
		last()
	}
}
