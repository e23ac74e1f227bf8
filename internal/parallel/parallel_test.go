package parallel_test

import (
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/internal/parallel"
)

func TestEachIsCalledOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		calls := make([]atomic.Int32, n)
		parallel.Each(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("of %d, number %d was done %d times", n, i, got)
			}
		}
	}
}

func TestPanicIsTheCallers(t *testing.T) {
	defer func() {
		if got := recover(); got != "no" {
			t.Errorf("the caller sees %v", got)
		}
	}()
	parallel.Each(8, func(i int) {
		if i == 5 {
			panic("no")
		}
	})
	t.Error("nothing was panicked")
}
