package attach

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/seal"
)

// CredentialStore seals credentials and opens them again. What it seals is bound to the
// store, the cluster and its version: it opens nowhere else (S26).
type CredentialStore struct {
	secrets config.Secrets
	keys    *seal.Keys
	epoch   string
}

// NewCredentialStore keeps credentials in the store of that epoch.
func NewCredentialStore(secrets config.Secrets, keys *seal.Keys, epoch string) *CredentialStore {
	return &CredentialStore{secrets: secrets, keys: keys, epoch: epoch}
}

// KeyOf is the Cluster object of an ID.
func KeyOf(id federation.ClusterID) federation.ObjectKey {
	return federation.ObjectKey{Group: federation.ClusterKind.Group, Kind: federation.ClusterKind.Name, Name: string(id)}
}

func (s *CredentialStore) place(of federation.ObjectKey, version string) string {
	return fmt.Sprintf("isthmus|%s|%s|%s", s.epoch, of, version)
}

// Seal makes the credentials something to be applied with the cluster's object.
func (s *CredentialStore) Seal(id federation.ClusterID, c Credentials) (apply.Credentials, error) {
	plain, err := c.encode()
	if err != nil {
		return apply.Credentials{}, fmt.Errorf("sealing the credentials of cluster %s: %w", id, err)
	}
	key, version := KeyOf(id), rand.Text()
	value, err := s.seal(key, version, plain)
	return apply.Credentials{Of: key, Version: version, Sealed: value}, err
}

// A stored value is the version, a line feed, and what was sealed for it.
func (s *CredentialStore) seal(key federation.ObjectKey, version string, plain []byte) ([]byte, error) {
	sealed, err := s.keys.Seal(plain, s.place(key, version))
	return append([]byte(version+"\n"), sealed...), err
}

// The reasons for which credentials cannot be used, beside those of seal.
var (
	ErrNone         = errors.New("there are none")
	ErrOtherVersion = errors.New("they are not those that its object names")
)

// Open returns the credentials of that version.
func (s *CredentialStore) Open(ctx context.Context, id federation.ClusterID, version string) (Credentials, error) {
	key := KeyOf(id)
	value, err := s.secrets.Secret(ctx, key)
	if err == nil && value == nil {
		err = ErrNone
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("reading the credentials of cluster %s: %w", id, err)
	}
	stored, sealed, _ := bytes.Cut(value, []byte("\n"))
	if string(stored) != version {
		return Credentials{}, fmt.Errorf("reading the credentials of cluster %s: %w", id, ErrOtherVersion)
	}
	plain, err := s.keys.Open(sealed, s.place(key, version))
	var c Credentials
	if err == nil {
		c, err = decodeCredentials(plain)
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("opening the credentials of cluster %s: %w", id, err)
	}
	return c, nil
}

// Learn keeps with the credentials who the cluster is, unless that is known.
func (s *CredentialStore) Learn(ctx context.Context, id federation.ClusterID, uid string) error {
	return s.setUID(ctx, id, func(known string) string { return cmp.Or(known, uid) })
}

// Unlearn forgets the cluster's identity: an operator confirms that the cluster was replaced.
func (s *CredentialStore) Unlearn(ctx context.Context, id federation.ClusterID) error {
	return s.setUID(ctx, id, func(string) string { return "" })
}

// setUID changes nothing but the UID, and nothing if the credentials were replaced
// meanwhile.
func (s *CredentialStore) setUID(ctx context.Context, id federation.ClusterID, change func(string) string) error {
	key := KeyOf(id)
	value, err := s.secrets.Secret(ctx, key)
	if err != nil || value == nil {
		return err
	}
	version, sealed, _ := bytes.Cut(value, []byte("\n"))
	plain, err := s.keys.Open(sealed, s.place(key, string(version)))
	if err != nil {
		return err
	}
	c, err := decodeCredentials(plain)
	if err != nil || c.UID == change(c.UID) {
		return err
	}
	c.UID = change(c.UID)
	plain, err = c.encode()
	if err != nil {
		return err
	}
	fresh, err := s.seal(key, string(version), plain)
	if err != nil {
		return err
	}
	done, err := s.secrets.Reseal(ctx, config.Secret{Of: key, Sealed: value}, config.Secret{Of: key, Sealed: fresh})
	if err == nil && !done {
		err = fmt.Errorf("the credentials of cluster %s were changed meanwhile; try again", id)
	}
	return err
}

// Reseal reseals everything that was not sealed with the newest key, and
// returns how many. What cannot be opened stays as it is; the error names it.
func (s *CredentialStore) Reseal(ctx context.Context) (count int, err error) {
	all, err := s.secrets.SecretsOf(ctx)
	if err != nil {
		return 0, err
	}
	for _, key := range all {
		done, fault := s.reseal(ctx, key)
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("resealing the credentials of %s: %w", key, fault))
		}
		if done {
			count++
		}
	}
	return count, err
}

func (s *CredentialStore) reseal(ctx context.Context, key federation.ObjectKey) (bool, error) {
	value, err := s.secrets.Secret(ctx, key)
	if err != nil || value == nil {
		return false, err
	}
	version, sealed, _ := bytes.Cut(value, []byte("\n"))
	if id, err := seal.KeyID(sealed); err != nil || id == s.keys.Newest() {
		return false, err
	}
	plain, err := s.keys.Open(sealed, s.place(key, string(version)))
	if err != nil {
		return false, err
	}
	fresh, err := s.seal(key, string(version), plain)
	if err != nil {
		return false, err
	}
	return s.secrets.Reseal(ctx, config.Secret{Of: key, Sealed: value}, config.Secret{Of: key, Sealed: fresh})
}

// VersionOf is the version of the credentials that a Cluster object names; empty:
// it has none.
func VersionOf(o *config.Object) string {
	var m struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(o.Manifest, &m) // what the store has can be read
	return m.Metadata.Annotations[federation.CredentialsAnnotation]
}
