package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"isthmus.dev/isthmus/internal/text"
)

// leftoverPrefix begins the names of files that are written to replace another one.
const leftoverPrefix = ".new-"

// removeLeftovers removes what a crash left beside files that were being replaced:
// it may hold keys. The folder is locked, so no other process writes there.
func (d *Dir) removeLeftovers() error {
	var wrong []error
	for _, folder := range []string{d.path, d.LastKnownGood(), d.Sources("crd"), d.Sources("ingress"), d.TokenKeys()} {
		files, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for leftovers in %s: %w", folder, text.WithoutPath(err))
		}
		for _, f := range files {
			if !f.Type().IsRegular() || !strings.HasPrefix(f.Name(), leftoverPrefix) {
				continue
			}
			if err := os.Remove(filepath.Join(folder, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				wrong = append(wrong, fmt.Errorf("%s may hold keys and cannot be removed: remove it: %w", f.Name(), text.WithoutPath(err)))
			}
		}
	}
	return errors.Join(wrong...)
}
