package kubernetes

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// workerGroup runs the registry's goroutines and keeps the first panic of one of them,
// so that it reaches the supervisor of the registry instead of ending the hub (F5).
type workerGroup struct {
	running sync.WaitGroup
	stop    func() // ends all of them

	mu  sync.Mutex
	hit *panicked
}

// panicked is a panic on its way to the goroutine of Run.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (c *workerGroup) start(run func()) {
	c.running.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				c.record(&panicked{value: v, stack: debug.Stack()})
			}
		}()
		run()
	})
}

func (c *workerGroup) record(p *panicked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hit == nil {
		c.hit = p
	}
	c.stop()
}

// end stops all, waits for their end and panics with what one of them did.
func (c *workerGroup) end() {
	c.stop()
	c.running.Wait()
	if c.hit != nil {
		panic(c.hit)
	}
}
