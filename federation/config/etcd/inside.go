package etcd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap/zapcore"
)

// inside lets callers into the embedded server while it runs. It is the one place that
// knows that the server has ended: from then on no caller gets in, and those who are in get
// an answer at once. A server that failed may hold a lock for ever, or panic.
type inside struct {
	over   chan struct{} // closed when no caller gets in any more
	failed chan struct{} // closed when the server failed
	calls  sync.WaitGroup

	mu  sync.Mutex // guards the rest, and calls from beginning after the end
	why error      // nil: it runs
}

func newInside() *inside { return &inside{over: make(chan struct{}), failed: make(chan struct{})} }

var errEnded = errors.New("the embedded etcd has ended")

// OnWrite is part of zapcore.CheckWriteHook: etcd says that it cannot go on. Left alone it
// would end the whole process; here it ends the goroutine in which it came up.
func (i *inside) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	why := entry.Message
	for _, field := range fields {
		if err, is := field.Interface.(error); is {
			why += ": " + err.Error()
		}
	}
	i.fail(why)
	runtime.Goexit()
}

// fail says why the server cannot go on. Only the first reason counts.
func (i *inside) fail(why string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endBy(fmt.Errorf("%w: %s", errEnded, why))
	select {
	case <-i.failed:
	default:
		close(i.failed)
	}
}

func (i *inside) endBy(why error) {
	if i.why == nil {
		i.why = why
		close(i.over)
	}
}

// ended is why the server has ended, or nil while it runs.
func (i *inside) ended() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.why
}

// ask returns what the question returns, no later than the end of the context or of the
// server.
func (i *inside) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.mu.Lock()
	why := i.why
	if why == nil {
		i.calls.Add(1)
	}
	i.mu.Unlock()
	if why != nil {
		return why
	}
	answer := make(chan error, 1)
	go func() {
		defer i.calls.Done()
		defer func() {
			if p := recover(); p != nil {
				i.fail(fmt.Sprint(p))
			}
		}()
		answer <- question(ctx)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-i.over:
		return i.ended()
	}
}

// end waits for the questions that are under way and lets none follow. It is false
// for a server that has failed: that one may never answer.
func (i *inside) end() bool {
	i.mu.Lock()
	i.endBy(errEnded)
	i.mu.Unlock()
	answered := make(chan struct{})
	go func() { defer close(answered); i.calls.Wait() }()
	select {
	case <-i.failed:
		return false
	default:
	}
	select {
	case <-answered:
		return true
	case <-i.failed:
		return false
	}
}
