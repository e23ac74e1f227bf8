package authority

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestBE3AnAuthorityThatDoesNotOpenSignsNothing: it says why, keeps what is stored,
// and is back as soon as it can be opened.
func TestBE3AnAuthorityThatDoesNotOpenSignsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o *Options, stored *memory)
		heal  func(o *Options, stored *memory)
		roots int // that are trusted meanwhile
		why   string
	}{
		"other keys": {
			func(o *Options, _ *memory) { o.Keys = &changing{xor(7)} },
			func(o *Options, _ *memory) { o.Keys.(*changing).xor = xor(90) }, 1, "key file with which it was sealed",
		},
		"a flipped bit of the key": {
			func(o *Options, m *memory) {
				m.value = bytes.Replace(m.value, []byte(`"sealedKey":"`), []byte(`"sealedKey":"AA`), 1)
			},
			func(o *Options, m *memory) {
				m.value = bytes.Replace(m.value, []byte(`"sealedKey":"AA`), []byte(`"sealedKey":"`), 1)
			}, 0, "restore the store",
		},
		"no record": {
			func(o *Options, m *memory) { m.value = append([]byte("{"), m.value...) },
			func(o *Options, m *memory) { m.value = m.value[1:] }, 0, "restore the store from a backup",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			o := r.options()
			c.spoil(&o, r.store)
			before := bytes.Clone(r.store.value)
			a, err := Open(t.Context(), o)
			if err != nil {
				t.Fatalf("it does not open: %v", err)
			}
			order := Order{Key: newKey(t).Public(), Workload: web}
			_, err = a.Sign(order)
			if !errors.Is(err, ErrNoSigner) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("signing: %v, want %q", err, c.why)
			}
			if s := a.Status(); s.Signer != "" || !errors.Is(s.Trouble, ErrUnusable) || s.Roots != c.roots {
				t.Errorf("it stands %+v", s)
			}
			if err := a.Rotate(t.Context(), false); !errors.Is(err, ErrUnusable) {
				t.Errorf("rotating: %v", err)
			}
			if !bytes.Equal(before, r.store.value) {
				t.Error("what is stored was changed")
			}
			c.heal(&o, r.store)
			if err := a.reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Sign(order); err != nil || a.Status().Trouble != nil || len(a.Roots()) != 1 {
				t.Errorf("after it was healed: %v, %+v", err, a.Status())
			}
		})
	}
}

// changing has keys that a test changes.
type changing struct{ xor }

// TestAKeyThatIsLostIsReplacedByForce: the new root signs at once, and what the old
// one signed is trusted until it ends.
func TestAKeyThatIsLostIsReplacedByForce(t *testing.T) {
	r := newRig(t, nil)
	old, leaf := r.Roots()[0], r.issue(Order{})
	r.Authority = r.replica(func(o *Options) { o.Keys = xor(7) })
	if err := r.Rotate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if r.issue(Order{}).CheckSignatureFrom(old) == nil || r.Status().Trouble != nil {
		t.Errorf("after a forced rotation it stands %+v", r.Status())
	}
	if _, err := r.trust().Verify(certificates(t, encodeCertificate(leaf.Raw))); err != nil {
		t.Errorf("what the old root signed: %v", err)
	}
	if got := turns(r.Authority); got != "RETIRED SIGNING" {
		t.Errorf("the signers are %s", got)
	}
}

func turns(a *Authority) string {
	var all []string
	for _, s := range a.Signers() {
		all = append(all, string(s.State))
	}
	return strings.Join(all, " ")
}

// TestSignersShowTheirTurns, and a rotation waits for the one before.
func TestSignersShowTheirTurns(t *testing.T) {
	r := newRig(t, nil)
	if got := turns(r.Authority); got != "SIGNING" {
		t.Errorf("at first the signers are %s", got)
	}
	if err := r.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := turns(r.Authority); got != "SIGNING WAITING" {
		t.Errorf("after a rotation the signers are %s", got)
	}
	if err := r.Rotate(t.Context(), false); !errors.Is(err, ErrRotating) || !strings.Contains(err.Error(), "from ") {
		t.Errorf("another rotation: %v", err)
	}
	r.pass(2 * time.Hour)
	if got := turns(r.Authority); got != "RETIRED SIGNING" {
		t.Errorf("after the overlap the signers are %s", got)
	}
	domains, roots := r.trust().RootStatuses()
	if len(domains) != 1 || len(roots["mesh.example"]) != 2 || roots["mesh.example"][0].Fingerprint == roots["mesh.example"][1].Fingerprint {
		t.Errorf("the bundles are %v %+v", domains, roots)
	}
}
