// Command install puts the real programs that the tests run into the tool
// cache: it builds etcd, kube-apiserver, Consul, Istio's agent and istioctl from pinned
// sources, fetches Envoy by its hash and adds the missing system packages. What is already
// there is verified and kept. Run it by "make tools".
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

func main() {
	if err := install(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

// install brings every tool and system package to its pinned state. Only one
// installation runs at a time in a cache; another waits.
func install(out io.Writer) error {
	root, err := toolset.Root()
	if err != nil {
		return err
	}
	cache, err := toolset.Cache()
	if err != nil {
		return err
	}
	unlock, err := lock(cache, out)
	if err != nil {
		return err
	}
	defer unlock()
	started := time.Now()
	if err := installSystemPackages(out); err != nil {
		return err
	}
	site := site{root: root, cache: cache, out: out}
	for _, tool := range toolset.All() {
		if err := site.ensure(tool); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "tools ready in %s (%s); %s has links to them\n",
		cache, elapsed(started), filepath.Join(root, ".cache", "tools"))
	return nil
}

// lock takes the lock of the cache and clears what a broken-off installation
// left. The lock ends with the process at the latest.
func lock(cache string, out io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the tool cache: %w; set ISTHMUS_TOOLS_DIR to a folder that can be written", err)
	}
	file, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the tool cache: %w", err)
	}
	fd := int(file.Fd())
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(out, "another installation is running; waiting for it…")
		if err := syscall.Flock(fd, syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking the tool cache: %w", err)
		}
	}
	leftovers, err := filepath.Glob(filepath.Join(cache, "partial-*"))
	if err != nil {
		return nil, fmt.Errorf("clearing the tool cache: %w", err)
	}
	for _, path := range leftovers {
		if err := os.RemoveAll(path); err != nil {
			return nil, fmt.Errorf("clearing the tool cache: %w", err)
		}
	}
	return func() { file.Close() }, nil
}

func elapsed(since time.Time) time.Duration {
	return time.Since(since).Round(100 * time.Millisecond)
}
