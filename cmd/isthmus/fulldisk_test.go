package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestF20FullDiskRefusesChanges: the disk below the data folder, a small one that only
// the hub sees, fills up. Changes are refused before etcd ends at it, everything
// else goes on, and changes are taken again when there is room.
func TestF20FullDiskRefusesChanges(t *testing.T) {
	t.Parallel()
	const size = 256 << 20
	dir := shortDir(t)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := fmt.Sprintf(`mount -t tmpfs -o size=%d,mode=0700 isthmus "$0" && exec "$@"`, size)
	p := startCommand(t, dir, append([]string{"unshare", "--mount", "sh", "-c", mount, data, os.Args[0]}, sockets(dir)...)...)
	h := &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "graphql"))}
	if made, err := h.applyEntry("before", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}

	filling := filepath.Join("/proc", fmt.Sprint(p.Process.Pid), "root", data, "filling")
	fill(t, filling, filepath.Dir(filling), 32<<20)
	refused, err := h.applyEntry("meanwhile", 1)
	if err != nil || len(refused.Apply.UserErrors) != 1 || refused.Apply.UserErrors[0].Code != "STORAGE_FULL" ||
		!strings.Contains(refused.Apply.UserErrors[0].Message, "free space") || !strings.Contains(refused.Apply.UserErrors[0].Message, data) {
		t.Fatalf("a change on a full disk is answered %+v, %v", refused, err)
	}
	var seen struct{ ConfigObjects struct{ TotalCount int } }
	if err := h.query(`{configObjects {totalCount}}`, &seen); err != nil || seen.ConfigObjects.TotalCount != 1 {
		t.Errorf("with a full disk the hub shows %d objects, %v", seen.ConfigObjects.TotalCount, err)
	}
	h.register(t, "small") // there is room for it
	h.await(t, "the trouble in the log", func() error {
		if log := p.log.String(); !strings.Contains(log, "the disk of the store is full") {
			return errors.New(log)
		}
		return nil
	})

	if err := os.Remove(filling); err != nil {
		t.Fatal(err)
	}
	if made, err := h.applyEntry("after", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Errorf("with room again a change is answered %+v, %v", made, err)
	}
}

// fill makes a file that leaves so many bytes of its disk.
func fill(t *testing.T, file, disk string, left int64) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-left); err != nil {
		t.Fatal(err)
	}
}
