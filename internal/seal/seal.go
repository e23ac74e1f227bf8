// Package seal encrypts secrets at rest. Every secret has a data key of its own,
// which is wrapped by the newest key of a key file (S26, S27). What is sealed for
// one place cannot be opened in another.
package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
)

// The reasons for which something sealed is not opened. They hold nothing of it.
var (
	// ErrForeign: it was not made by Seal, or by a newer version of it.
	ErrForeign = errors.New("it is not in the form in which secrets are sealed here")
	// ErrUnknownKey: the key file lacks the key.
	ErrUnknownKey = errors.New("it was sealed with a key that is not in the key file; put the key file back with which it was sealed")
	// ErrTampered: the key is there, and the content or its place is another.
	ErrTampered = errors.New("it was changed since it was sealed, or sealed for another place; this may be tampering")
)

// form begins all that Seal returns; the number is that of the format.
const form = "isthmus-sealed/1\n"

// Seal encrypts the secret with the newest key. It is opened only for the same
// place: a text that says whose secret it is, and which one of it. The place is
// not part of the result.
func (k *Keys) Seal(secret []byte, place string) ([]byte, error) {
	sealed, err := k.ring().envelope.Encrypt(secret, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("sealing a secret: %w", err)
	}
	return append([]byte(form), sealed...), nil
}

// Open decrypts what Seal returned for the same place. Its error is one of the
// three above.
func (k *Keys) Open(sealed []byte, place string) ([]byte, error) {
	id, err := keyOf(sealed)
	if err != nil {
		return nil, err
	}
	r := k.ring()
	if !r.has(id) {
		return nil, fmt.Errorf("%w (key %s)", ErrUnknownKey, name(id))
	}
	secret, err := r.envelope.Decrypt(sealed[len(form):], []byte(place))
	if err != nil {
		return nil, ErrTampered // the library's own words add nothing that can be acted upon
	}
	return secret, nil
}

// KeyID names the key with which something was sealed; see Keys.Newest.
func KeyID(sealed []byte) (string, error) {
	id, err := keyOf(sealed)
	if err != nil {
		return "", err
	}
	return name(id), nil
}

// keyOf reads the ID of the wrapping key: the envelope is a length, and the data
// key as the wrapping key encrypted it, with the ID in its prefix.
func keyOf(sealed []byte) (uint32, error) {
	const lengthOfLength, prefix = 4, 5
	rest, ours := bytes.CutPrefix(sealed, []byte(form))
	if !ours || len(rest) < lengthOfLength+prefix || rest[lengthOfLength] != 1 {
		return 0, ErrForeign
	}
	return binary.BigEndian.Uint32(rest[lengthOfLength+1:]), nil
}

func name(id uint32) string { return fmt.Sprintf("%08x", id) }

// newEnvelope wraps data keys of AES-256-GCM, one a secret.
func newEnvelope(r *ring) error {
	wrapping, err := aead.New(r.handle)
	if err != nil {
		return err
	}
	r.envelope = aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), wrapping)
	return nil
}
