package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// leasedValue is a leased object as it is stored; etcd removes it with its
// lease.
type leasedValue struct {
	Key        federation.ObjectKey
	APIVersion string
	Revision   int64
	Manifest   []byte
	Seconds    int64 // of its lease
	Expires    time.Time
}

// Register is part of config.Leases. The time is rounded up to seconds, and to
// the least that the store can do.
func (c *Config) Register(ctx context.Context, o config.Object, ttl time.Duration) (time.Time, error) {
	key := leasedKey(o.Key)
	if err := o.Refusal(); err != nil {
		return time.Time{}, err
	}
	if k, err := readLeasedKey(key); err != nil || k != o.Key || ttl <= 0 {
		return time.Time{}, &config.Refused{Limit: "invalid object", Message: fmt.Sprintf("%s cannot be registered for %v", o.Key, ttl)}
	}
	if r := c.store.refusal(leaseReserve); r != nil {
		return time.Time{}, r
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	expires, err := c.register(ctx, key, o, ttl)
	return expires, fault("registering", err)
}

func (c *Config) register(ctx context.Context, key string, o config.Object, ttl time.Duration) (time.Time, error) {
	p, err := c.read.findHead(ctx)
	if err != nil {
		return time.Time{}, err
	}
	lease, err := c.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return time.Time{}, err
	}
	expires := c.o.Now().Add(time.Duration(lease.TTL) * time.Second)
	value, err := sealed(leasedValue{o.Key, o.APIVersion, p.Revision, o.Manifest, lease.TTL, expires})
	if err != nil {
		return time.Time{}, err
	}
	answer, err := c.client.Put(repeatably(ctx), key, value, clientv3.WithLease(lease.ID), clientv3.WithPrevKV())
	if err != nil {
		return time.Time{}, err
	}
	if old := answer.PrevKv; old != nil && old.Lease != 0 && clientv3.LeaseID(old.Lease) != lease.ID {
		// Nothing hangs on the old lease any more; what cannot be revoked ends.
		_, _ = c.client.Revoke(ctx, clientv3.LeaseID(old.Lease))
	}
	return expires, nil
}

func (c *Config) leaseOf(ctx context.Context, key federation.ObjectKey) (clientv3.LeaseID, int64, error) {
	answer, err := c.client.Get(ctx, leasedKey(key))
	if err != nil {
		return 0, 0, err
	}
	if len(answer.Kvs) == 0 || answer.Kvs[0].Lease == 0 {
		return 0, 0, config.ErrNoLease
	}
	return clientv3.LeaseID(answer.Kvs[0].Lease), answer.Kvs[0].ModRevision, nil
}

// Renew is part of config.Leases. It writes nothing: what the Source gives does
// not change.
func (c *Config) Renew(ctx context.Context, key federation.ObjectKey) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	lease, _, err := c.leaseOf(ctx, key)
	if err != nil {
		return time.Time{}, leaseFault("renewing", err)
	}
	answer, err := c.keepAlive(ctx, lease)
	if err != nil {
		return time.Time{}, leaseFault("renewing", err)
	}
	return c.o.Now().Add(time.Duration(answer.TTL) * time.Second), nil
}

// keepAlive asks another member when one does not answer.
func (c *Config) keepAlive(ctx context.Context, lease clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, tryFor)
		answer, err := c.client.KeepAliveOnce(limited, lease)
		cancel()
		if limited.Err() == nil || ctx.Err() != nil || err == nil {
			return answer, err
		}
	}
}

// Release is part of config.Leases.
func (c *Config) Release(ctx context.Context, key federation.ObjectKey) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	lease, mod, err := c.leaseOf(ctx, key)
	if err != nil {
		return noLeaseIsFine(leaseFault("releasing", err))
	}
	name := leasedKey(key)
	answer, err := c.client.Txn(repeatably(ctx)).If(clientv3.Compare(clientv3.ModRevision(name), "=",
		mod)).Then(clientv3.OpDelete(name)).Commit()
	if err != nil {
		return fault("releasing", err)
	}
	if answer.Succeeded {
		_, err = c.client.Revoke(ctx, lease)
	}
	return noLeaseIsFine(leaseFault("releasing", err))
}

func leaseFault(doing string, err error) error {
	if errors.Is(err, config.ErrNoLease) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return config.ErrNoLease
	}
	return fault(doing, err)
}

func noLeaseIsFine(err error) error {
	if errors.Is(err, config.ErrNoLease) {
		return nil
	}
	return err
}
