// Package keyfile checks the permissions of files with secrets: only the hub's own user
// and its group may read them, and no other user may change them.
package keyfile

import (
	"fmt"
	"os"
	"syscall"
)

// Check returns why a file with a secret may not be used as it is (B-Y6): others
// can read or change it, or it belongs to another user than the hub's own user and
// root, who can do both whatever its mode says. The file's name is for the caller to
// say.
func Check(info os.FileInfo) error {
	if info.Mode().Perm()&0o027 != 0 {
		return fmt.Errorf("others can read or change it (mode %04o); make it 0600 or 0640 (chmod 600)", info.Mode().Perm())
	}
	if stat, known := info.Sys().(*syscall.Stat_t); known {
		return owner(int(stat.Uid), os.Geteuid())
	}
	return nil
}

func owner(owner, self int) error {
	if owner == self || owner == 0 {
		return nil
	}
	return fmt.Errorf("it belongs to another user (number %d), who can read and change it; give it to the hub's own user (chown %d) or to root", owner, self)
}
