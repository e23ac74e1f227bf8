package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
)

func (r *rig) trust(files ...BundleFile) *Trust {
	r.t.Helper()
	trust, err := OpenTrust(TrustOptions{Authority: r.Authority, Files: files, Now: func() time.Time { return r.now }})
	if err != nil {
		r.t.Fatal(err)
	}
	return trust
}

func TestACertificateIsForOneWorkloadOfOneCluster(t *testing.T) {
	r := newRig(t, nil)
	leaf := r.issue(Order{Cluster: "c1"})
	proof, err := r.trust().Verify(certificates(t, encodeCertificate(leaf.Raw)))
	if err != nil || proof.Workload != web || !slices.Equal(proof.Clusters, []federation.ClusterID{"c1"}) || !proof.Ends.Equal(leaf.NotAfter) {
		t.Errorf("it proves %+v, %v", proof, err)
	}
	if leaf.IsCA || len(leaf.URIs) != 1 || len(leaf.DNSNames)+len(leaf.EmailAddresses)+len(leaf.IPAddresses) != 0 {
		t.Errorf("names are %v %v", leaf.URIs, leaf.DNSNames)
	}
}

func TestLifetimesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for asked, want := range map[time.Duration]time.Duration{
		0: time.Hour, time.Minute: time.Minute,
		48 * time.Hour: time.Hour, -time.Hour: time.Hour,
	} {
		if got := r.issue(Order{For: asked}).NotAfter.Sub(r.now); got != want {
			t.Errorf("asked for %s it lives %s, want %s", asked, got, want)
		}
	}
	short := newRig(t, func(o *Options) { o.Policy = Policy{Leaf: time.Hour, Root: 30 * time.Minute} })
	if leaf := short.issue(Order{}); leaf.NotAfter.After(short.Roots()[0].NotAfter) {
		t.Errorf("it ends at %s, after its signer", leaf.NotAfter)
	}
}

// A new root is trusted before it signs; the old one stays until the last
// certificate that it signed has ended.
func TestRootsTakeTurnsWithOverlap(t *testing.T) {
	r := newRig(t, nil)
	old, trust := r.Roots()[0], r.trust()
	changed := r.Changed()
	if err := r.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody learns about the new root")
	}
	if n := len(r.Roots()); n != 2 {
		t.Fatalf("there are %d roots after a rotation", n)
	}
	r.pass(2*time.Hour - time.Second)
	last := r.issue(Order{})
	if last.CheckSignatureFrom(old) != nil {
		t.Error("the new root signs before the overlap is over")
	}
	r.pass(time.Second)
	if r.issue(Order{}).CheckSignatureFrom(old) == nil {
		t.Error("the old root signs after the overlap")
	}
	for left := last.NotAfter.Sub(r.now); left > 0; left = last.NotAfter.Sub(r.now) {
		if _, err := trust.Verify(certificates(t, encodeCertificate(last.Raw))); err != nil {
			t.Fatalf("%s before its end the last certificate of the old root is refused: %v", left, err)
		}
		r.pass(20 * time.Minute)
	}
	r.pass(10 * time.Minute)
	if roots := r.Roots(); len(roots) != 1 || roots[0].Equal(old) {
		t.Errorf("%d roots are left, the old one among them: %t", len(roots), contains(roots, old))
	}
	if bytes.Contains(r.log.Bytes(), []byte("PRIVATE")) {
		t.Error("the log tells too much")
	}
}

// TestU48AClockThatIsSetBackLeavesASigner: the root whose turn has come signs on, although the clock says
// that its turn is to come, and what it signs is trusted at the time that the clock says.
func TestU48AClockThatIsSetBackLeavesASigner(t *testing.T) {
	r := newRig(t, nil)
	first := r.Roots()[0]
	signs := func(want *x509.Certificate, what string) {
		t.Helper()
		leaf := r.issue(Order{})
		if leaf.CheckSignatureFrom(want) != nil {
			t.Errorf("%s: another root signs", what)
		}
		if _, err := r.trust().Verify([]*x509.Certificate{leaf}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.pass(-time.Minute)
	signs(first, "the first root, a minute before it was made")
	r.pass(time.Minute)
	if err := r.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	second := r.Roots()[1]
	r.pass(time.Hour)
	r.pass(-30 * time.Minute)
	signs(first, "while the second waits")
	r.pass(90 * time.Minute)
	signs(second, "in its turn")
	r.pass(-time.Hour)
	signs(second, "an hour before its turn, which it has had")
	if roots := r.Roots(); len(roots) != 2 {
		t.Errorf("there are %d roots, and certificates of both are in use", len(roots))
	}
	again := r.replica(nil)
	if _, err := again.Sign(Order{Workload: web, Key: newKey(t).Public()}); err != nil {
		t.Errorf("a hub that starts with that clock: %v", err)
	}
	r.pass(time.Hour)
	signs(second, "when the clock is right again")
	r.pass(-24 * time.Hour)
	if _, err := r.Sign(Order{Workload: web, Key: newKey(t).Public()}); !errors.Is(err, ErrNoSigner) {
		t.Errorf("before the root is valid, signing gives %v", err)
	}
}

func TestARootIsFollowedBeforeItEnds(t *testing.T) {
	r := newRig(t, nil)
	first := r.Roots()[0]
	for r.now.Before(first.NotAfter.Add(time.Hour)) {
		r.pass(10 * time.Hour)
		if leaf := r.issue(Order{}); leaf.NotAfter.Sub(r.now) != time.Hour {
			t.Fatalf("%s before its end the root gives %s", first.NotAfter.Sub(r.now), leaf.NotAfter.Sub(r.now))
		}
	}
	if contains(r.Roots(), first) {
		t.Error("a root that has ended is still trusted")
	}
}

func TestReplicasShareOneAuthority(t *testing.T) {
	r := newRig(t, nil)
	other := r.replica(nil)
	if !sameCertificates(r.Roots(), other.Roots()) {
		t.Fatal("a second replica made a root of its own")
	}
	if err := other.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	r.pass(0)
	if !sameCertificates(r.Roots(), other.Roots()) || len(r.Roots()) != 2 {
		t.Error("the rotation by one replica is not seen by the other")
	}
}

func TestTheStoredKeyIsSealedForItsPlace(t *testing.T) {
	r := newRig(t, nil)
	if bytes.Contains(r.store.value, []byte("PRIVATE KEY")) || !bytes.Contains(r.store.value, []byte("sealedKey")) {
		t.Errorf("stored is %s", r.store.value)
	}
	for name, change := range map[string]func(*Options){
		"other trust domain": func(o *Options) { o.TrustDomain = "other.example" },
		"store down":         func(o *Options) { o.Store = &memory{fails: errors.New("down")} },
	} {
		o := r.options()
		change(&o)
		if a, err := Open(t.Context(), o); err == nil {
			t.Errorf("%s: it opens with %d roots", name, len(a.Roots()))
		}
	}
	if r.store.revision != 1 {
		t.Error("an authority that cannot be read was overwritten")
	}
}

// A store that is away changes nothing: certificates are signed on.
func TestAnAuthorityOutlivesItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Now, o.Poll = time.Now, time.Minute })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		r.store.mu.Lock()
		r.store.fails = errors.New("down")
		r.store.mu.Unlock()
		time.Sleep(10*time.Minute + time.Second) //nolint:forbidigo // the clock is that of the test
		r.issue(Order{})
		if s := r.Status(); s.Trouble == nil || s.Signer == "" {
			t.Errorf("it stands %+v", s)
		}
		r.store.mu.Lock()
		r.store.fails = nil
		r.store.mu.Unlock()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of the test
		if s := r.Status(); s.Trouble != nil {
			t.Errorf("after the store is back: %v", s.Trouble)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := strings.Count(r.log.String(), "could not be reloaded"); n != 1 {
			t.Errorf("the log complains %d times", n)
		}
	})
}

func TestKeysPrintAsRedacted(t *testing.T) {
	f := Files{Key: Key("canary")}
	text, err := f.Key.MarshalText()
	if said := fmt.Sprintf("%v %+v %#v %s %x %s", f, f, f, f.Key, f.Key, text); err != nil || strings.Contains(said, "canary") ||
		strings.Contains(said, "63616e617279") {
		t.Errorf("it prints %s, %v", said, err)
	}
}

// What was sealed with an older key is resealed.
func TestKeysAreSealedAnew(t *testing.T) {
	r := newRig(t, nil)
	before := bytes.Clone(r.store.value)
	anew := false
	r.Authority = r.replica(func(o *Options) {
		o.Keys, o.Stale = turning{old: 90, new: 17}, func(sealed []byte) bool { return anew && sealed[0] == 'a'^90 }
	})
	r.pass(0)
	if !bytes.Equal(r.store.value, before) {
		t.Error("what is not stale was resealed")
	}
	anew = true
	r.pass(0)
	if bytes.Equal(r.store.value, before) {
		t.Fatal("it was not resealed")
	}
	revision := r.store.revision
	r.pass(0)
	if r.store.revision != revision {
		t.Error("it is sealed again and again")
	}
	r.Authority = r.replica(func(o *Options) { o.Keys = xor(17) })
	r.issue(Order{})
}

// turning seals with the new and opens with both.
type turning struct{ old, new xor }

func (k turning) Seal(secret []byte, place string) ([]byte, error) { return k.new.Seal(secret, place) }

func (k turning) Open(sealed []byte, place string) ([]byte, error) {
	if secret, err := k.new.Open(sealed, place); err == nil {
		return secret, nil
	}
	return k.old.Open(sealed, place)
}

// slowStore is a store that does not answer while it is told so.
type slowStore struct {
	*memory
	loads  chan struct{} // gets each load
	answer chan struct{}
}

func (s *slowStore) Load(ctx context.Context) ([]byte, int64, error) {
	if s.loads != nil {
		s.loads <- struct{}{}
		<-s.answer
	}
	return s.memory.Load(ctx)
}

// TestAChangeThatWaitsForAnotherEndsWithItsContext: a store that does not answer holds up only
// the change that is under way.
func TestAChangeThatWaitsForAnotherEndsWithItsContext(t *testing.T) {
	var store *slowStore
	r := newRig(t, func(o *Options) {
		store = &slowStore{memory: &memory{}, answer: make(chan struct{})}
		o.Store = store
	})
	store.loads = make(chan struct{}, 1)
	first := make(chan error, 1)
	go func() { first <- r.reload(t.Context()) }()
	<-store.loads
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Rotate(ended, false); !errors.Is(err, context.Canceled) {
		t.Errorf("the change ends with %v, not with its context", err)
	}
	if len(r.Roots()) != 1 {
		t.Errorf("there are %d roots, want the first one", len(r.Roots()))
	}
	close(store.answer)
	if err := <-first; err != nil {
		t.Errorf("the change before it failed: %v", err)
	}
}
