package consul

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// panicked is a panic of one of the registry's goroutines on its way to Run,
// which panics with it: the supervisor of the registry decides.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// caught runs the function and returns its panic.
func caught(run func()) (p *panicked) {
	defer func() {
		if v := recover(); v != nil {
			p = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	run()
	return nil
}

func rethrow(err error) {
	var p *panicked
	if errors.As(err, &p) {
		panic(p)
	}
}

// spawn starts one of the syncer's goroutines.
func (p *pollers) spawn(ctx context.Context, run func()) {
	p.wg.Go(func() {
		if caught := caught(run); caught != nil {
			send(ctx, p.trouble, error(caught))
		}
	})
}
