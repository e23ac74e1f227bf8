package proxies

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Secrets gives xds what identity keeps.
type Secrets struct {
	Kept      *identity.Secrets
	folder    *identity.Folder // nil: there is none
	snapshots *federation.Aggregate
	hub       federation.ClusterID
}

// Follow is part of xds.Secrets.
func (s Secrets) Follow(ref xds.SecretRef, proven func() time.Time) (done func()) {
	return s.Kept.FollowProven(identity.Ref(ref), proven)
}

// Secret is part of xds.Secrets.
func (s Secrets) Secret(ref xds.SecretRef) (xds.Secret, bool) {
	found, ok := s.Kept.Secret(identity.Ref(ref))
	return xds.Secret{Fingerprint: found.Fingerprint, Material: transport.KeyMaterial(found.Material)}, ok
}

// Changed is part of xds.Secrets.
func (s Secrets) Changed() <-chan struct{} { return s.Kept.Changed() }

// SecretOptions say where secrets come from, and whose problems theirs are.
type SecretOptions struct {
	Dir        string // empty: none
	Hub        federation.ClusterID
	Identities *identities.Identities
	Snapshots  *federation.Aggregate
	Logger     *slog.Logger
}

// OpenSecrets reads the folder of secrets, if there is one.
func OpenSecrets(o SecretOptions) (Secrets, error) {
	p := Secrets{
		Kept:      identity.New(identity.Options{Logger: o.Logger, Issuer: o.Identities, Roots: o.Identities.Trust}),
		snapshots: o.Snapshots, hub: o.Hub,
	}
	if o.Dir == "" {
		return p, nil
	}
	var err error
	p.folder, err = identity.OpenFolder(o.Dir, p.Kept, identity.FolderOptions{Logger: o.Logger})
	if err != nil {
		return p, fmt.Errorf("--secret-dir: %w", err)
	}
	return p, nil
}

// Run follows the sources until the context ends.
func (s Secrets) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return s.Kept.Run(ctx) })
	group.Go(func() error { s.show(ctx); return nil })
	if s.folder != nil {
		defer func() { _ = s.folder.Close() }()
		group.Go(func() error { return s.folder.Run(ctx) })
	}
	return group.Wait()
}

// show keeps what is wrong with secrets among the problems of the hub's own
// cluster, which configuration introduces.
func (s Secrets) show(ctx context.Context) {
	writer := s.snapshots.Open(federation.ShardKey{Cluster: s.hub, Provider: federation.Operator})
	for ctx.Err() == nil {
		wrong, wait := s.Kept.Problems()
		if snapshot := s.snapshots.Latest(); known(snapshot, s.hub) {
			writer.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Full: true, Set: wrong}})
		} else {
			wait = snapshot.Superseded()
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

func known(snapshot *federation.Snapshot, id federation.ClusterID) bool {
	_, is := snapshot.Cluster(id)
	return is
}
