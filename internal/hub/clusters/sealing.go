package clusters

import (
	"context"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/seal"
)

// sealing follows the key file: what was sealed with an older key is resealed.
type sealing struct {
	keys   *seal.Keys
	vault  *attach.Vault
	logger *slog.Logger
	failed string // why the key file could not be read when it was last logged
}

// keyEvery is the time between two looks at the key file.
const keyEvery = 2 * time.Second

func (s *sealing) run(ctx context.Context) error {
	tick := time.NewTicker(keyEvery)
	defer tick.Stop()
	for anew := true; ; {
		if anew {
			anew = !s.reseal(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		anew = s.reload() || anew
	}
}

// reload reports whether the key file has other keys. A file that stays unreadable is
// logged once.
func (s *sealing) reload() (changed bool) {
	changed, err := s.keys.Reload()
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	switch {
	case failed == s.failed:
	case err != nil:
		s.logger.Warn("the key file cannot be read; the keys that were read stay in use", "err", err)
	default:
		s.logger.Info("the key file can be read again")
	}
	s.failed = failed
	return changed
}

// reseal reports whether everything that can be opened is sealed with the newest
// key.
func (s *sealing) reseal(ctx context.Context) bool {
	count, err := s.vault.Reseal(ctx)
	if ctx.Err() != nil {
		return false
	}
	if count > 0 {
		s.logger.Info("credentials were resealed", "count", count, "key", s.keys.Newest())
	}
	if err != nil {
		s.logger.Warn("credentials were not resealed; the hub tries again when the key file changes", "err", err)
	}
	return true
}
