package fetch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
)

const (
	keptURI   = "https://issuer.example/keys"
	publicSet = `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	secretSet = `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`
)

// hubFor runs a Keeper for some time with a folder, and returns what it had of the source at last.
func hubFor(t *testing.T, dir string, i *issuers, lasting time.Duration) federation.KeySet {
	t.Helper()
	a := federation.NewAggregate(nil)
	m := &mesh{t: t, aggregate: a, issuers: i, operator: a.Open(federation.ShardKey{Provider: federation.Operator})}
	m.apply("shop", "a", rule(keptURI))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	keeper := New(Options{
		Snapshots: a, To: a.Open(federation.ShardKey{Provider: "Keys"}), Fetch: i.fetch, Dir: dir, Logger: slog.New(slog.DiscardHandler),
	})
	go func() { done <- keeper.Run(ctx) }()
	<-time.NewTimer(lasting).C
	synctest.Wait()
	set, _ := federation.KeySetIn(a.Latest(), federation.KeySource{URI: keptURI})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return set
}

// TestR100KeysOutliveAHubWhoseIssuerIsAway: a hub that starts while an issuer does not answer uses the keys that the issuer gave
// in the last day, and says that they are old.
func TestR100KeysOutliveAHubWhoseIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, i := t.TempDir(), &issuers{answers: map[string]string{keptURI: publicSet}}
		if got := hubFor(t, dir, i, time.Minute); got.Keys != publicSet || got.Problem != "" {
			t.Fatalf("the first hub has %+v", got)
		}
		i.answer(keptURI, "")
		for range 2 { // a hub that has none of its own keeps what is on disk
			if got := hubFor(t, dir, i, time.Minute); got.Keys != publicSet || got.Problem == "" {
				t.Fatalf("a hub that starts while the issuer is away has %+v", got)
			}
		}
		<-time.NewTimer(mostAge).C
		if got := hubFor(t, dir, i, time.Minute); got.Keys != "" {
			t.Errorf("a day later a hub has %+v", got)
		}
		other := `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"RSGh7zU1iVhzCSuwSeNNyGq5nbqsmQoQKZzUHyhHbWI"}]}`
		i.answer(keptURI, other)
		if got := hubFor(t, dir, i, time.Minute); got.Keys != other || got.Problem != "" {
			t.Errorf("after the issuer is back a hub has %+v", got)
		}
	})
}

// TestR100SecretsAndDamageStayOff: keys that can sign are not written, and a damaged file is as none.
func TestR100SecretsAndDamageStayOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, i := t.TempDir(), &issuers{answers: map[string]string{keptURI: publicSet}}
		hubFor(t, dir, i, time.Minute)
		i.answer(keptURI, secretSet)
		if got := hubFor(t, dir, i, time.Minute); got.Keys != secretSet {
			t.Fatalf("the hub has %+v", got)
		}
		i.answer(keptURI, "")
		if got := hubFor(t, dir, i, time.Minute); got.Keys != "" {
			t.Errorf("secret keys, or those before them, were kept: %+v", got)
		}
		if err := os.WriteFile(filepath.Join(dir, "keys.db"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		i.answer(keptURI, publicSet)
		if got := hubFor(t, dir, i, time.Minute); got.Keys != publicSet {
			t.Errorf("beside a damaged file the hub has %+v", got)
		}
		i.answer(keptURI, "")
		if got := hubFor(t, dir, i, time.Minute); got.Keys != publicSet {
			t.Errorf("the damaged file was not replaced: %+v", got)
		}
	})
}
