package hub

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// proxySecrets gives xds what identity keeps.
type proxySecrets struct {
	kept      *identity.Secrets
	folder    *identity.Folder // nil: there is none
	snapshots *federation.Aggregate
	hub       federation.ClusterID
}

// Follow is part of xds.Secrets.
func (s proxySecrets) Follow(ref xds.SecretRef, proven func() time.Time) (done func()) {
	return s.kept.FollowProven(identity.Ref(ref), proven)
}

// Secret is part of xds.Secrets.
func (s proxySecrets) Secret(ref xds.SecretRef) (xds.Secret, bool) {
	found, ok := s.kept.Secret(identity.Ref(ref))
	return xds.Secret{Fingerprint: found.Fingerprint, Material: transport.KeyMaterial(found.Material)}, ok
}

// Changed is part of xds.Secrets.
func (s proxySecrets) Changed() <-chan struct{} { return s.kept.Changed() }

// joinSecrets reads the folder of secrets, if there is one.
func joinSecrets(s Settings, who *identities, snapshots *federation.Aggregate, logger *slog.Logger) (proxySecrets, error) {
	p := proxySecrets{kept: identity.New(identity.Options{Logger: logger, Issuer: who, Roots: who.trust}), snapshots: snapshots, hub: federation.ClusterID(s.clusterID)}
	if s.secretDir == "" {
		return p, nil
	}
	var err error
	if p.folder, err = identity.OpenFolder(s.secretDir, p.kept, identity.FolderOptions{Logger: logger}); err != nil {
		return p, usagef("--secret-dir: %v", err)
	}
	return p, nil
}

// run follows the sources until the context ends.
func (s proxySecrets) run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return s.kept.Run(ctx) })
	group.Go(func() error { s.show(ctx); return nil })
	if s.folder != nil {
		defer func() { _ = s.folder.Close() }()
		group.Go(func() error { return s.folder.Run(ctx) })
	}
	return group.Wait()
}

// show keeps what is wrong with secrets among the problems of the hub's own
// cluster, which configuration introduces.
func (s proxySecrets) show(ctx context.Context) {
	writer := s.snapshots.Open(federation.ShardKey{Cluster: s.hub, Provider: federation.Operator})
	for ctx.Err() == nil {
		wrong, wait := s.kept.Problems()
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
