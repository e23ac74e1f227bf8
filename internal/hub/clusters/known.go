package clusters

import (
	"context"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
)

// forgetWithin is how long the store may take to forget a cluster.
const forgetWithin = 5 * time.Second

// Record is one value of the store; etcd.Shared is one.
type Record interface {
	Load(ctx context.Context) (value []byte, revision int64, err error)
	Save(ctx context.Context, value []byte, revision int64) (saved bool, err error)
}

// knownClusters keeps in the store of record who the clusters of the config file
// and of the watched folder are, since the data folder is a cache (R08). A Cluster
// object has it beside its credentials. The value is the UID; empty: not known.
type knownClusters func(federation.ClusterID) Record

// forget has the cluster's identity learnt again: an operator confirms that the cluster was replaced.
func (k knownClusters) forget(ctx context.Context, id federation.ClusterID) error {
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forgetWithin)
	defer cancel()
	of := k(id)
	value, revision, err := of.Load(ctx)
	if err != nil || len(value) == 0 {
		return err
	}
	_, err = of.Save(ctx, nil, revision)
	return err
}

// remember has the registry of a cluster of a file find out who it is from the store, and
// keep it there.
func (m maker) remember(id federation.ClusterID, open opener) opener {
	if m.known == nil {
		return open
	}
	of := m.known(id)
	return record{
		read: func(ctx context.Context) (string, opener, error) {
			value, _, err := of.Load(ctx)
			return string(value), open, err
		},
		unread: func(err error) string {
			return fmt.Sprintf("who the cluster is cannot be read from the store: %v", err)
		},
		learn: func(ctx context.Context, uid string) error {
			value, revision, err := of.Load(ctx)
			if err != nil || len(value) > 0 {
				return err
			}
			_, err = of.Save(ctx, []byte(uid), revision) // who was faster read the same cluster
			return err
		},
	}.opener(id, m.Logger)
}
