package listwatch

import (
	"errors"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestR06ABudgetIsOneForAllItsShares, and what went makes room.
func TestR06ABudgetIsOneForAllItsShares(t *testing.T) {
	b := NewBudget(federation.Limits{Objects: 2}, nil)
	services, pods, nodes := b.Share(), b.Share(), b.Share()
	var limit federation.LimitError
	if pods.list(1) != nil || nodes.list(1) != nil || !errors.As(nodes.list(1), &limit) {
		t.Fatal("three objects of two kinds are not too many")
	}
	nodes.unlist()
	if err := nodes.queue(1); err != nil {
		t.Errorf("after the list was dropped: %v", err)
	}
	if services.queue(1) == nil {
		t.Error("what waits for its user does not count")
	}
	nodes.unqueue(1)
	if err := services.queue(1); err != nil {
		t.Errorf("what the user dropped counts on: %v", err)
	}
}
