package clusters

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/seal"
)

// TestF20UnreadableKeyFileIsLoggedOnce: a key file that stays unreadable is logged once,
// and so is its return.
func TestF20UnreadableKeyFileIsLoggedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	keys, err := seal.OpenKeys(path, true)
	if err != nil {
		t.Fatal(err)
	}
	away := path + ".away"
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := &sealing{keys: keys, credentials: attach.NewCredentialStore(noSecrets{}, keys, ""), logger: slog.New(slog.NewTextHandler(&log, nil))}
		go s.run(ctx)
		for range 2 {
			for _, move := range [][2]string{{path, away}, {away, path}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
				<-time.NewTimer(3 * keyEvery).C
			}
		}
		stop()
	})
	if lost, back := strings.Count(log.String(), "cannot be read"), strings.Count(log.String(), "can be read again"); lost != 2 || back != 2 {
		t.Errorf("it is logged %d and %d times, want 2 each:\n%s", lost, back, log.String())
	}
}

// noSecrets is a store without credentials.
type noSecrets struct{ config.Secrets }

func (noSecrets) SecretsOf(context.Context) ([]federation.ObjectKey, error) { return nil, nil }
