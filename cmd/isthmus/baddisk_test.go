package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestF20HubOutlivesItsDisk: the file system below the data folder, one that only the hub
// sees, stops after an error as ext4 does: nothing can be written, by files that are open
// either. The hub serves on, refuses changes at once, and says where and what to do. A
// start is refused without the advice to begin with an empty store; with the disk in order all is there.
func TestF20HubOutlivesItsDisk(t *testing.T) {
	dir := shortDir(t)
	data, image := filepath.Join(dir, "data"), filepath.Join(dir, "image")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	system(t, "truncate", "-s", "512M", image)
	system(t, "mkfs.ext4", "-q", "-F", image)
	mounted := func(script string, then ...string) []string {
		return append([]string{"unshare", "--mount", "sh", "-c", script + ` && shift && exec "$@"`, image, data}, then...)
	}
	const inOrder = `mount -o loop,errors=remount-ro "$0" "$1"`
	serve := append([]string{os.Args[0]}, sockets(dir)...)
	p := startCommand(t, dir, mounted(inOrder, serve...)...)
	h := &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "graphql"))}
	if made, err := h.applyEntry("before", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}

	system(t, "nsenter", "-t", fmt.Sprint(p.Process.Pid), "-m", "mount", "-o", "remount,abort", data)
	h.await(t, "a change to be refused", func() error { return h.notWritable("meanwhile", data) })
	h.awaitTrouble(t, "STORAGE_NOT_WRITABLE", "")
	h.wantReadsWithoutDisk(t, data)
	if err := h.hasMetrics(`isthmus_config_store_writable{folder="` + filepath.Join(data, "etcd") + `"} 0`); err != nil {
		t.Error(err)
	}
	h.await(t, "the end of the store in the log", func() error {
		if log := p.log.String(); !strings.Contains(log, "the store ended: the hub serves what it has and refuses changes") {
			return errors.New(log)
		}
		return nil
	})
	for n := range 5 {
		testbed.Within(t, 50*time.Millisecond, func() time.Duration {
			began := time.Now()
			if err := h.notWritable(fmt.Sprint("later-", n), data); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		})
	}

	_ = p.Process.Signal(os.Interrupt)
	if err := <-p.done; err != nil {
		t.Errorf("asked to stop, the hub ends with %v:\n%s", err, p.log.String())
	}
	for name, script := range map[string]string{
		"disk":         inOrder + ` && mount -o remount,ro "$1"`,
		"store's disk": inOrder + ` && mount --bind "$1/etcd" "$1/etcd" && mount -o remount,bind,ro "$1/etcd"`,
	} {
		args := mounted(script, serve...)
		start := exec.CommandContext(t.Context(), args[0], args[1:]...)
		start.Env = append(os.Environ(), asProgram+"=1")
		said, err := start.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "read-only file system") || !strings.Contains(string(said), "writable") ||
			strings.Contains(string(said), "new-store") {
			t.Errorf("a start whose %s is read-only ends with %v:\n%s", name, err, said)
		}
	}
	startCommand(t, dir, mounted(inOrder, serve...)...)
	h.wantReads(t)
	if made, err := h.applyEntry("after", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Errorf("with the disk in order a change is answered %+v, %v", made, err)
	}
}

// notWritable applies something that the disk cannot take.
func (h *hubUnderTest) notWritable(name, data string) error {
	refused, err := h.applyEntry(name, 1)
	if err != nil || len(refused.Apply.UserErrors) != 1 {
		return fmt.Errorf("it is answered %+v, %w", refused, err)
	}
	if e := refused.Apply.UserErrors[0]; e.Code != "STORAGE_NOT_WRITABLE" || !strings.Contains(e.Message, data) ||
		!strings.Contains(e.Message, "check its disk") {
		return fmt.Errorf("it is refused as %+v", e)
	}
	return nil
}

// wantReadsWithoutDisk wants everything that is in memory, quickly.
func (h *hubUnderTest) wantReadsWithoutDisk(t *testing.T, data string) {
	t.Helper()
	for range 5 {
		testbed.Within(t, 50*time.Millisecond, func() time.Duration {
			began := time.Now()
			h.wantReads(t)
			return time.Since(began)
		})
	}
	if clusters, err := h.firstClusters(t); err != nil || !strings.Contains(fmt.Sprint(clusters), "before.example.com") {
		t.Errorf("a proxy that comes without a disk gets %.300v, %v", clusters, err)
	}
	if status, body, err := h.get("/readyz"); err != nil || status != 200 || !strings.Contains(body, data) || !strings.Contains(body, "disk") {
		t.Errorf("the hub answers %d %s, %v", status, body, err)
	}
}

func system(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
