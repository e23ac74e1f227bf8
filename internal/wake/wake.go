// Package wake has the signal by which goroutines tell another one that there is something to do.
package wake

// Signal wakes the one goroutine that receives from it. What there is to do is kept elsewhere: any number of
// notifications before it receives are one.
type Signal chan struct{}

// New makes a signal.
func New() Signal { return make(Signal, 1) }

// Notify has the receiver look again. It does not block.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
