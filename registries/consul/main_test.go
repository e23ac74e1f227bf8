package consul

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain finds goroutines that a registry leaves behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
