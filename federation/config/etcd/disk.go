package etcd

import (
	"fmt"
	"syscall"

	"isthmus.dev/isthmus/federation/config"
)

// diskReserve is how much of the disk must be free for a change. The embedded etcd ends,
// and the hub with it, at the first write for which there is no room: changes are
// refused before that. It is the size of a segment of etcd's log of writes, which
// is the largest piece that etcd adds to its folder at once.
const diskReserve = 64 << 20

// diskFull says what is wrong while the disk of an embedded store has no room for
// changes; "" while it has.
func (s *Store) diskFull() string {
	var disk syscall.Statfs_t
	if s.server == nil || syscall.Statfs(s.dir, &disk) != nil {
		return "" // etcd itself says what is wrong with its folder
	}
	free := disk.Bavail * uint64(disk.Bsize)
	if free >= diskReserve {
		return ""
	}
	return fmt.Sprintf("the disk of %s has %d MiB left, and the embedded etcd needs %d MiB to take a change; free space on it: changes are taken again at once",
		s.dir, free>>20, diskReserve>>20)
}

// onDisk refuses a change for which the disk has no room.
func (s *Store) onDisk() error {
	if why := s.diskFull(); why != "" {
		return &config.Refused{Limit: "storage full", Message: why}
	}
	return nil
}
