package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// sharedRoot is where values are that are not a configuration and that all replicas
// of the hub share.
const sharedRoot = "/isthmus/v1/shared/"

// sharedPatience is how long the store may take for such a value.
const sharedPatience = 5 * time.Second

// Shared is one value that all replicas of the hub share.
type Shared struct {
	client *clientv3.Client
	key    string
}

// Shared is the value of the name.
func (s *Store) Shared(name string) Shared { return Shared{s.client, sharedRoot + name} }

// Load returns the value and its revision; revision 0: there is none.
func (v Shared) Load(ctx context.Context) ([]byte, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sharedPatience)
	defer cancel()
	answer, err := v.client.Get(ctx, v.key)
	if err != nil {
		return nil, 0, fault("reading "+v.key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, 0, nil
	}
	value, err := payload(answer.Kvs[0].Value)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", v.key, err)
	}
	return value, answer.Kvs[0].ModRevision, nil
}

// Save stores the value if the revision is still that; saved false: it is not.
func (v Shared) Save(ctx context.Context, value []byte, revision int64) (saved bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sharedPatience)
	defer cancel()
	answer, err := v.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(v.key), "=", revision)).
		Then(clientv3.OpPut(v.key, seal(value))).Commit()
	if err != nil {
		return false, fault("writing "+v.key, err)
	}
	return answer.Succeeded, nil
}
