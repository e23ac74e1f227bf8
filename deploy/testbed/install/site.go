package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// A site is one checkout with the cache that its tools go to.
type site struct {
	root, cache string
	out         io.Writer
}

// ensure verifies one tool or installs it, and links it from the checkout.
func (s site) ensure(tool toolset.Tool) error {
	dir, err := tool.Dir(s.root, s.cache)
	if err != nil {
		return err
	}
	if err := tool.Verify(dir); err != nil {
		if err := s.installTool(tool, dir); err != nil {
			return fmt.Errorf("installing %s: %w", tool.Name, err)
		}
	}
	fmt.Fprintf(s.out, "%-15s %s\n", tool.Name, filepath.Join(dir, tool.Name))
	return s.link(tool, dir)
}

// installTool makes the tool in a folder of its own and moves that into place
// when it is complete.
func (s site) installTool(tool toolset.Tool, dir string) error {
	partial, err := os.MkdirTemp(s.cache, "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := os.Chmod(partial, 0o755); err != nil {
		return err
	}
	path := filepath.Join(partial, tool.Name)
	if tool.Package == "" {
		err = s.fetchEnvoy(tool, path)
	} else {
		err = s.build(tool, path)
	}
	if err != nil {
		return err
	}
	sum, err := toolset.Checksum(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(partial, "sha256"), []byte(sum+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

func (s site) build(tool toolset.Tool, path string) error {
	cmd := exec.Command("go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-tags="+tool.Tags, "-o", path, tool.Package)
	cmd.Dir = filepath.Join(s.root, toolset.Room, tool.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if err := s.step("building "+tool.Name+" from source", tool.About, cmd); err != nil {
		return err
	}
	for _, name := range tool.Beside {
		if err := s.copyBeside(tool, name, filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

// copyBeside copies a file of the tool's module.
func (s site) copyBeside(tool toolset.Tool, name, to string) error {
	list := exec.Command("go", "list", "-f", "{{.Module.Dir}}", tool.Package)
	list.Dir = filepath.Join(s.root, toolset.Room, tool.Module)
	list.Env = append(os.Environ(), "GOWORK=off")
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("finding the module of %s: %w", tool.Name, err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, filepath.Base(name)), data, 0o644)
}

// step runs one long command, says so before and after, and once a minute in
// between. A failure carries what the command printed.
func (s site) step(what, about string, cmd *exec.Cmd) error {
	fmt.Fprintf(s.out, "%s, %s the first time…\n", what, about)
	started := time.Now()
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(s.out, "  still %s (%s)\n", what, elapsed(started))
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", cmd, err, printed.Bytes())
			}
			fmt.Fprintf(s.out, "  done in %s\n", elapsed(started))
			return nil
		}
	}
}

// link points .cache/tools/NAME of the checkout at the installed program.
func (s site) link(tool toolset.Tool, dir string) error {
	links := filepath.Join(s.root, ".cache", "tools")
	if err := os.MkdirAll(links, 0o755); err != nil {
		return fmt.Errorf("linking %s: %w", tool.Name, err)
	}
	link := filepath.Join(links, tool.Name)
	if err := os.RemoveAll(link); err != nil {
		return fmt.Errorf("linking %s: %w", tool.Name, err)
	}
	if err := os.Symlink(filepath.Join(dir, tool.Name), link); err != nil {
		return fmt.Errorf("linking %s: %w", tool.Name, err)
	}
	return nil
}
