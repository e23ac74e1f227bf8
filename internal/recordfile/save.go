package recordfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"isthmus.dev/isthmus/internal/retry"
)

// saveDelay is how long changes are collected, so that each is on disk within 1 s.
const saveDelay = 800 * time.Millisecond

// SaveAgain is the pause after a write that failed.
const SaveAgain = 5 * time.Second

// Write writes the records and the header: whole, the records are all that the file has; else
// they are changed in the file, which exists. It makes the folder of the file.
func (f File) Write(whole bool, header Header, records []Record) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	if whole {
		return f.Create(header, records)
	}
	return f.Update(header, records)
}

// Save calls write for what changed until the context ends, and once more then. It waits for a
// sign in wake after a write, and tries again after one that failed. failed is called for the
// first of several failures in a row.
func Save(ctx context.Context, wake <-chan struct{}, write func() error, failed func(error)) {
	failing := false
	for pause := saveDelay; ; {
		goes := retry.Sleep(ctx, pause)
		err := write()
		if err != nil && !failing {
			failed(err)
		}
		failing, pause = err != nil, saveDelay
		switch {
		case !goes:
			return
		case failing:
			pause = SaveAgain
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}
