package memory

import (
	"bytes"
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// keep takes the secrets of a commit. The caller holds mu.
func (s *Store) keep(secrets []config.Secret) {
	for _, secret := range secrets {
		if len(secret.Sealed) == 0 {
			delete(s.secrets, secret.Of)
			continue
		}
		s.secrets[secret.Of] = bytes.Clone(secret.Sealed)
	}
}

// Secret is part of config.Secrets.
func (s *Store) Secret(ctx context.Context, of federation.ObjectKey) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.secrets[of]), s.answers(ctx)
}

// SecretsOf is part of config.Secrets.
func (s *Store) SecretsOf(ctx context.Context) ([]federation.ObjectKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return keysOf(s.secrets), s.answers(ctx)
}

// Reseal is part of config.Secrets.
func (s *Store) Reseal(ctx context.Context, old, fresh config.Secret) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answers(ctx); err != nil {
		return false, err
	}
	if now := s.secrets[old.Of]; now == nil || !bytes.Equal(now, old.Sealed) {
		return false, nil
	}
	s.secrets[old.Of] = bytes.Clone(fresh.Sealed)
	return true, nil
}
