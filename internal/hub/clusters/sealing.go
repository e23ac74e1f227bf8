package clusters

import (
	"context"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/filewatch"
	"isthmus.dev/isthmus/internal/seal"
)

// sealing follows the key file: what was sealed with an older key is resealed.
type sealing struct {
	keys        *seal.Keys
	credentials *attach.CredentialStore
	logger      *slog.Logger
}

// keyEvery is the time between two looks at the key file.
const keyEvery = 2 * time.Second

func (s *sealing) run(ctx context.Context) error {
	done := s.reseal(ctx)
	filewatch.Poll(ctx, keyEvery, func() error {
		changed, err := s.keys.Reload()
		if changed || !done {
			done = s.reseal(ctx)
		}
		return err
	}, filewatch.Logged(s.logger, "the key file cannot be read; the keys that were read stay in use", "the key file can be read again"))
	return nil
}

// reseal reports whether everything that can be opened is sealed with the newest
// key.
func (s *sealing) reseal(ctx context.Context) bool {
	count, err := s.credentials.Reseal(ctx)
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
