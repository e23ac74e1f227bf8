package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPatience is how long another process may take to let go of the data.
const lockPatience = time.Second

// intact looks through the database of an embedded etcd that does not run: its
// structure must be whole, and no other process may have it open. etcd itself
// would wait for the other for ever, and may end the process over damage.
func intact(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // with it goes the lock
	if err := lockIn(file, lockPatience); errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another process uses %s; stop it or name another folder", dir)
	} else if err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	if err := checkPages(file); err != nil {
		return fmt.Errorf("%s is damaged (%w); restore a backup of the folder, or remove it and start once with --new-store to begin with an empty store", path, err)
	}
	return nil
}

func lockIn(file *os.File, patience time.Duration) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return err
		}
	}
}
