package wake_test

import (
	"testing"

	"isthmus.dev/isthmus/internal/wake"
)

// TestManyNotificationsAreOne: a receiver looks once after any number of them, and not for one that came before it looked.
func TestManyNotificationsAreOne(t *testing.T) {
	s := wake.New()
	for range 3 {
		s.Notify()
	}
	<-s
	select {
	case <-s:
		t.Error("the receiver looks twice")
	default:
	}
	s.Notify()
	<-s
}
