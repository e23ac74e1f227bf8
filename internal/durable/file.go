// Package durable writes small files that survive a crash: afterwards, a file has its old
// content or its new one, and never a part of either.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces the file by one with that content, which only this user can
// read. When it returns, the content is on disk.
func WriteFile(path string, content []byte) error {
	fresh := path + ".new" // one name: what a crash leaves is written over
	if err := write(fresh, content); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return Rename(fresh, path)
}

func write(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// Rename renames a file or a folder. When it returns, the new name is on disk.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
