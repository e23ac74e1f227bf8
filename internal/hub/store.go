package hub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/internal/hub/datadir"
	"isthmus.dev/isthmus/internal/hub/mesh"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/seal"
)

// The values that replicas share in the store, beside the configuration.
const (
	sharedAuthority = "authority"       // the certificate authority
	sharedKnown     = "known-clusters/" // who the clusters of files are, by ID
	sharedStatus    = "status-writer"   // which hub writes the status of objects into clusters
)

func openStore(ctx context.Context, s settings.Settings, dir *datadir.Dir, logger *slog.Logger) (*etcd.Store, error) {
	secure, err := s.Etcd.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("etcd.tls: %w", err)
	}
	return etcd.Open(ctx, etcd.Options{
		DataDir: dir.Etcd(), Endpoints: s.Etcd.Endpoints, TLS: secure, Logger: logger, Quota: s.Etcd.QuotaBytes, New: s.NewStore,
	})
}

// openKeys opens the keys with which credentials, and the authority's own keys, are
// sealed. They are made where nothing is sealed yet.
func openKeys(ctx context.Context, s settings.Settings, dir *datadir.Dir, store *etcd.Store) (*seal.Keys, error) {
	sealed, err := store.Config(etcd.ConfigOptions{Patience: mesh.StorePatience}).SecretsOf(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for credentials in the store: %w", err)
	}
	_, revision, err := store.Shared(sharedAuthority).Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for the certificate authority in the store: %w", err)
	}
	keys, err := seal.OpenKeys(cmp.Or(s.SealKey, dir.SealKey()), len(sealed) == 0 && revision == 0)
	if err != nil {
		return nil, fmt.Errorf("--seal-key: %w", err)
	}
	return keys, nil
}
