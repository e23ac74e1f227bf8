package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Binary is the hub's own program, built once for the tests of a package by the
// first of them that needs it.
type Binary struct {
	flags []string // Of go build.
	once  sync.Once
	dir   string
	err   error
}

// NewBinary returns a binary that go build makes with these flags.
func NewBinary(flags ...string) *Binary { return &Binary{flags: flags} }

// Main runs the tests and removes the binary; it is for TestMain and returns
// the exit code.
func (b *Binary) Main(m *testing.M) int {
	code := m.Run()
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
	return code
}

// Path builds the binary, or ends the test if it cannot be built.
func (b *Binary) Path(t testing.TB) string {
	t.Helper()
	Needs(t, "the hub as a program")
	b.once.Do(b.build)
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.file()
}

func (b *Binary) file() string { return filepath.Join(b.dir, "isthmus") }

func (b *Binary) build() {
	b.dir, b.err = os.MkdirTemp("", "isthmus-binary-")
	if b.err != nil {
		return
	}
	args := append(append([]string{"build", "-ldflags=-s -w"}, b.flags...), "-o", b.file(), "isthmus.dev/isthmus/cmd/isthmus")
	cmd := exec.Command("go", args...)
	if !slices.Contains(b.flags, "-race") {
		cmd.Env = append(os.Environ(), Shared()...)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("building the hub: %w\n%s", err, out)
	}
}

// Shared is the environment in which go builds as make build does, so that what one checkout
// has compiled is not compiled again by another, nor by a copy of it.
func Shared() []string { return []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"} }
