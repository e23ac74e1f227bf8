package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
)

// stage is what the testbed asks of a test, for a measurement. It is for one
// goroutine.
type stage struct {
	testing.TB // for what the testbed does not use
	ends       []func()
	failure    error
}

func (s *stage) Helper()                  {}
func (s *stage) Name() string             { return "bench" }
func (s *stage) Context() context.Context { return context.Background() }
func (s *stage) Log(...any)               {}
func (s *stage) Logf(string, ...any)      {}
func (s *stage) Failed() bool             { return s.failure != nil }
func (s *stage) Error(args ...any)        { s.Errorf("%s", fmt.Sprint(args...)) }
func (s *stage) Fatal(args ...any)        { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *stage) Cleanup(end func())       { s.ends = append(s.ends, end) }

func (s *stage) Errorf(format string, args ...any) {
	if s.failure == nil {
		s.failure = fmt.Errorf(format, args...)
	}
}

// Fatalf ends the goroutine that called it, as in a test.
func (s *stage) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		s.Fatalf("making a folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // leftovers are in the system's temporary folder
	return dir
}

// on runs the measurement with the real programs that it starts, and ends them.
func on(measure func(*stage) error) error {
	s := &stage{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, end := range slices.Backward(s.ends) {
				end()
			}
		}()
		if err := measure(s); err != nil {
			s.Errorf("%w", err)
		}
	}()
	<-done
	return s.failure
}
