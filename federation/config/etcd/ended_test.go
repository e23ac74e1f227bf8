package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestF20NothingWaitsForAStoreThatEnded: whatever is read from the store or written to it
// fails at once when its etcd has ended, without a deadline of the caller's, and so does
// what was waiting then. What is known in memory is given.
func TestF20NothingWaitsForAStoreThatEnded(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	recorder, _ := configtest.Listen(t, c)
	base := configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	recorder.WaitRevision(t, base)
	ctx := context.WithoutCancel(t.Context())
	waiting := s.Hang(ctx)
	s.End(t, "failed to commit tx: read-only file system")
	if err := <-waiting; !errors.Is(err, etcd.ErrEnded) {
		t.Errorf("what was waiting ends with %v", err)
	}

	key, value := configtest.Key("a"), s.Shared("value")
	for name, ask := range map[string]func() error{
		"records": func() error { _, err := c.Records(ctx, 0, 1); return err },
		"at":      func() error { _, err := c.At(ctx, base); return err },
		"find":    func() error { _, err := c.Find(ctx, "key"); return err },
		"secret":  func() error { _, err := c.Secret(ctx, key); return err },
		"secrets": func() error { _, err := c.SecretsOf(ctx); return err },
		"reseal": func() error {
			_, err := c.Reseal(ctx, config.Secret{Of: key}, config.Secret{Of: key, Sealed: []byte("x")})
			return err
		},
		"renew":       func() error { _, err := c.Renew(ctx, key); return err },
		"release":     func() error { return c.Release(ctx, key) },
		"shared load": func() error { _, _, err := value.Load(ctx); return err },
		"shared save": func() error { _, err := value.Save(ctx, []byte("x"), 0); return err },
	} {
		if err := ask(); !errors.Is(err, config.ErrUnavailable) || !strings.Contains(err.Error(), "read-only file system") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	_, commit := c.Commit(ctx, configtest.Set(base, configtest.Object("b", 1)))
	_, register := c.Register(ctx, *configtest.Object("b", 1), time.Minute)
	for name, err := range map[string]error{"commit": commit, "register": register} {
		if limit(err) != "storage not writable" || !strings.Contains(err.Error(), "make the folder writable") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if h, err := c.History(ctx, key); err != nil || len(h.Steps) != 1 {
		t.Errorf("the history in memory: %+v, %v", h, err)
	}
	recorder.Wait(t, "the trouble", code("STORAGE_NOT_WRITABLE"))
	if seen := recorder.Now(); len(seen.Objects) != 1 {
		t.Errorf("there are %d objects", len(seen.Objects))
	}
}

// TestF20HubEndsForWhatARestartCures: a store that failed without its disk ends the hub,
// so that it is started again; one that failed at its disk would not start.
func TestF20HubEndsForWhatARestartCures(t *testing.T) {
	for why, ends := range map[string]bool{"slice bounds out of range": true, "write db: no space left on device": false} {
		s := opened(t, etcd.Options{})
		s.End(t, why)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		if !ends {
			waitUntil(t, "the folder to be found usable",
				func() bool { return strings.Contains(s.Refusal().Message, "restart isthmus") && s.Usable() })
			cancel()
		}
		if err := <-ended; (err != nil) != ends || ends && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: Run ends with %v", why, err)
		}
		cancel()
	}
}
