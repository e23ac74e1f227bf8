package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"isthmus.dev/isthmus/federation/config"
)

// diskReserve is how much of the disk must be free for a change. The embedded etcd ends
// at the first write for which there is no room: changes are refused before that. It is
// the size of a segment of etcd's log of writes, which is the largest piece that etcd
// adds to its folder at once.
const diskReserve = 64 << 20

// leaseReserve is how much must be free for a registration: registrations are small, and
// workloads should not be lost as long as there is room for them. Renewing one writes
// nothing.
const leaseReserve = diskReserve / 4

// The rules by which a disk refuses changes; see config.Refused.
const (
	limitFull        = "storage full"
	limitNotWritable = "storage not writable"
)

// cures are what to do about a disk that refuses writes, by the system's word for it.
// etcd often gives no more than that word.
var cures = map[syscall.Errno]string{
	syscall.ENOSPC: "free space on its disk",
	syscall.EDQUOT: "free space on its disk",
	syscall.EROFS:  "check its disk and make the folder writable",
	syscall.EACCES: "make the folder writable for the user of the hub",
	syscall.EPERM:  "make the folder writable for the user of the hub",
	syscall.EIO:    "check its disk",
}

// notDamaged keeps people from removing a store for the sake of its disk.
const notDamaged = "a disk that refuses writes does not damage the store: restore a backup of the folder only if the disk is lost"

// atDisk is what to do about an error that comes from the disk, or "".
func atDisk(why error) string {
	for errno, cure := range cures {
		if strings.Contains(why.Error(), errno.Error()) {
			return cure
		}
	}
	return ""
}

// writable tries to write into the folder.
func writable(dir string) error {
	path := filepath.Join(dir, ".writable")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("isthmus checks that it can write here\n")
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(path))
}

// openable checks that the folder of a store can be written. etcd would take a disk that
// refuses writes for damage.
func openable(dir string) error {
	err := writable(dir)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the folder cannot be written (%w): %s, and start again; %s", err, cureOf(err), notDamaged)
}

func cureOf(err error) string {
	if cure := atDisk(err); cure != "" {
		return cure
	}
	return "check its disk"
}

// Refusal is why the disk of an embedded store takes no changes, and what to do; nil
// while it does.
func (s *Store) Refusal() *config.Refused { return s.refusal(diskReserve) }

// refusal is that for a write that needs so much room.
func (s *Store) refusal(reserve uint64) *config.Refused {
	if s.server == nil {
		return nil
	}
	if r := s.refusalOfEnded(); r != nil {
		return r
	}
	var disk syscall.Statfs_t
	if s.statfs(s.dir, &disk) != nil {
		return nil // etcd itself says what is wrong with its folder
	}
	if disk.Flags&syscall.MS_RDONLY != 0 {
		return &config.Refused{Limit: limitNotWritable, Message: fmt.Sprintf(
			"the disk of %s has become read-only, and the embedded etcd ends when it next writes; %s: the hub serves what it has",
			s.dir, cures[syscall.EROFS])}
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < reserve {
		return &config.Refused{Limit: limitFull, Message: fmt.Sprintf(
			"the disk of %s has %d MiB left, and the embedded etcd needs %d MiB to take a change; free space on it: changes are taken again at once",
			s.dir, free>>20, reserve>>20)}
	}
	return nil
}

// cause is why an embedded etcd has ended, or nil.
func (s *Store) cause() error {
	if s.inside == nil {
		return nil
	}
	return s.inside.ended()
}

// refusalOfEnded refuses changes once the embedded etcd has ended. Nothing of it is asked.
func (s *Store) refusalOfEnded() *config.Refused {
	why := s.cause()
	if why == nil {
		return nil
	}
	do := cureOf(why) + ", then restart isthmus"
	if s.usable.Load() {
		do = "the folder can be written again: restart isthmus"
	}
	return &config.Refused{Limit: limitNotWritable, Message: fmt.Sprintf(
		"%s could not be written (%s); %s. Until then the hub serves what it has and refuses changes", s.dir, why, do)}
}

// onDisk refuses a change for which the disk has no room.
func (s *Store) onDisk() error {
	if r := s.Refusal(); r != nil {
		return r
	}
	return nil
}

// outlive keeps a hub going whose etcd ended at its disk, until the context ends, and
// notes whether the folder can be written again. etcd cannot be opened twice in one
// process while the first one may still hold its files (ADR 0126).
func (s *Store) outlive(ctx context.Context, every time.Duration) {
	log := func(level slog.Level, message string) {
		s.logger.Log(ctx, level, message, "dir", s.dir, "reason", s.refusalOfEnded().Message)
	}
	log(slog.LevelError, "the store ended: the hub serves what it has and refuses changes")
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := writable(s.dir) == nil && s.hasRoom()
		switch was := s.usable.Swap(now); {
		case now && !was:
			log(slog.LevelWarn, "the folder of the store can be written again: restart isthmus to take changes")
		case was && !now:
			log(slog.LevelError, "the folder of the store cannot be written")
		}
	}
}

func (s *Store) hasRoom() bool {
	var disk syscall.Statfs_t
	return syscall.Statfs(s.dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) >= diskReserve
}
