package fetch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
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

// TestR101OnlyKeysOfIssuersThatAreAwayComeFromTheDisk: an issuer that answers without keys has revoked those on disk, before a hub uses them
// and after, and so has a policy that refuses its address.
func TestR101OnlyKeysOfIssuersThatAreAwayComeFromTheDisk(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error // one for each hub
		want    string  // the keys of the last hub
	}{
		"away":            {[]error{errAway, errAway}, publicSet},
		"revoked":         {[]error{noKeys()}, ""},
		"revoked, away":   {[]error{noKeys(), errAway}, ""},
		"refused":         {[]error{refusal("the address is one of the hub")}, ""},
		"refused, away":   {[]error{refusal("the address is one of the hub"), errAway}, publicSet},
		"not a set, away": {[]error{notASet(), errAway}, publicSet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				hubFor(t, dir, &issuers{answers: map[string]string{keptURI: publicSet}}, time.Minute)
				var got federation.KeySet
				for _, err := range c.answers {
					got = hubFor(t, dir, &issuers{err: err}, time.Minute)
				}
				if got.Keys != c.want {
					t.Errorf("the hub has %+v, want the keys %q", got, c.want)
				}
			})
		})
	}
}

// TestR101AnIssuerThatIsBackWithoutKeysRevokesOldOnes: keys from the disk are not used any more once the issuer says that it has none.
func TestR101AnIssuerThatIsBackWithoutKeysRevokesOldOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		hubFor(t, dir, &issuers{answers: map[string]string{keptURI: publicSet}}, time.Minute)
		i := &issuers{err: errAway}
		time.AfterFunc(time.Minute, func() { i.fail(noKeys()) })
		if got := hubFor(t, dir, i, time.Hour); got.Keys != "" {
			t.Errorf("the hub has %+v", got)
		}
	})
}

// TestR101AFileThatIsLostIsWrittenAgain: keys are on disk again after the file was deleted or damaged under a running hub.
func TestR101AFileThatIsLostIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, i := t.TempDir(), &issuers{answers: map[string]string{keptURI: publicSet}}
		time.AfterFunc(time.Minute, func() {
			if err := os.Remove(filepath.Join(dir, "keys.db")); err != nil {
				t.Error(err)
			}
		})
		hubFor(t, dir, i, time.Hour)
		if got := hubFor(t, dir, &issuers{err: errAway}, time.Minute); got.Keys != publicSet {
			t.Errorf("the hub has %+v", got)
		}
	})
}

var errAway = errors.New("the server answers with status 503")

func noKeys() error {
	_, err := jwks.Keys(`{"keys":[]}`)
	return err
}

func notASet() error {
	_, err := jwks.Keys(`{"message":"maintenance"}`)
	return err
}
