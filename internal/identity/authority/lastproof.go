package authority

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"
)

// A workload may renew its certificate with the one that it has. When it last proved who it is by something else travels in the
// certificates, so that it outlives restarts and holds for all hubs that share a signer (R12).

// lastProofID is the extension that has it, a GeneralizedTime. It is not critical: only hubs read it. An arc that Go reads has 31 bits.
var lastProofID = asn1.ObjectIdentifier{2, 25, 1904719332, 53, 1}

// ErrOldProof is the error of Sign for a workload whose last proof is too old.
var ErrOldProof = errors.New("its last proof is too old")

func lastProofExtension(at time.Time) (pkix.Extension, error) {
	value, err := asn1.MarshalWithParams(at.UTC().Truncate(time.Second), "generalized")
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encoding the time of the last proof: %w", err)
	}
	return pkix.Extension{Id: lastProofID, Value: value}, nil
}

// lastProofIn is what the certificate says; false: nothing.
func lastProofIn(leaf *x509.Certificate) (time.Time, bool) {
	for _, extension := range leaf.Extensions {
		if !extension.Id.Equal(lastProofID) {
			continue
		}
		var at time.Time
		if _, err := asn1.UnmarshalWithParams(extension.Value, &at, "generalized"); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// lastProof is when the owner of a verified certificate last proved who it is. A certificate of the hub's own signers that does not
// say so began a chain itself. One of others without the extension is a proof of its own: who signed it saw to that.
func lastProof(leaf *x509.Certificate, own bool) time.Time {
	if at, said := lastProofIn(leaf); said {
		return at
	}
	if own {
		return leaf.NotBefore
	}
	return time.Time{}
}

// checkProof returns when the order's workload last proved who it is, if that is not too long ago.
func (o Order) checkProof(now time.Time, longest time.Duration) (time.Time, error) {
	at := o.Proven
	if at.IsZero() || at.After(now) {
		at = now
	}
	if now.Sub(at) <= longest {
		return at, nil
	}
	what := "send its service account token"
	if !o.Expired.IsZero() {
		what = fmt.Sprintf("the token that it shows expired at %s: replace the token of its agent", o.Expired.UTC().Format(time.RFC3339))
	}
	return at, fmt.Errorf("signing the certificate of %s: %w: except by certificates of the hub it proved its identity last at %s, and that is valid for %s "+
		"(identity.maxProofAge); %s, or connect from an address at which a registry knows the workload",
		o.Workload, ErrOldProof, at.UTC().Format(time.RFC3339), longest, what)
}
