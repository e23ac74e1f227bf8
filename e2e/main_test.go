package e2e

import (
	"os"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// binary is the program under test, with the race detector.
var binary = testbed.NewBinary("-race")

func TestMain(m *testing.M) { os.Exit(binary.Main(m)) }
