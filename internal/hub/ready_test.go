package hub

import (
	"testing"
	"testing/synctest"
	"time"

	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
)

// TestK10AStartingHubWaitsForKeys: it is not ready before each source of keys was tried once, and waits for
// none longer than 10 s.
func TestK10AStartingHubWaitsForKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := federation.NewAggregate(nil)
		w := a.Open(federation.ShardKey{Provider: federation.Operator})
		key := federation.RequestAuthenticationKind.Key("shop", "tokens")
		spec := &security.RequestAuthentication{JwtRules: []*security.JWTRule{
			{Issuer: "i", JwksUri: "https://a"},
			{Issuer: "https://b"},
			{Issuer: "i", Jwks: "{}"},
		}}
		w.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: {Key: key, Spec: spec}}}})
		waits := func() <-chan struct{} {
			done := make(chan struct{})
			go func() { (&readiness{snapshots: a}).waitForKeys(t.Context()); close(done) }()
			synctest.Wait()
			return done
		}
		ended := func(done <-chan struct{}) bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		tried := func(from federation.KeySource, set federation.KeySet) {
			w.Update(federation.Edit{KeySets: federation.Delta[federation.KeySource,
				federation.KeySet]{Set: map[federation.KeySource]federation.KeySet{from: set}}})
			synctest.Wait()
		}
		long := waits()
		<-time.NewTimer(keysPatience - time.Second).C
		if ended(long) {
			t.Error("the hub does not wait")
		}
		<-time.NewTimer(2 * time.Second).C
		if !ended(long) {
			t.Error("the hub waits for ever")
		}
		both := waits()
		tried(federation.KeySource{URI: "https://a"}, federation.KeySet{Keys: "{}"})
		if ended(both) {
			t.Error("the hub waits for the first source alone")
		}
		tried(federation.KeySource{URI: "https://b/.well-known/openid-configuration", OpenID: true}, federation.KeySet{Problem: "it is away"})
		if !ended(both) {
			t.Error("the hub waits for a source that was tried")
		}
	})
}
