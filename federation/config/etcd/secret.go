package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// secretValue is the value that is stored beside an object.
type secretValue struct {
	Key    federation.ObjectKey
	Sealed []byte
}

func (v secretValue) encode() (string, error) { return sealed(v) }

// secretOps write the secrets of a commit.
func secretOps(secrets []config.Secret) ([]clientv3.Op, error) {
	var ops []clientv3.Op
	for _, s := range secrets {
		if len(s.Sealed) == 0 {
			ops = append(ops, clientv3.OpDelete(secretKey(s.Of)))
			continue
		}
		value, err := secretValue{s.Of, s.Sealed}.encode()
		if err != nil {
			return nil, err
		}
		ops = append(ops, clientv3.OpPut(secretKey(s.Of), value))
	}
	return ops, nil
}

// Secret is part of config.Secrets.
func (c *Config) Secret(ctx context.Context, of federation.ObjectKey) ([]byte, error) {
	kv, err := c.secretAt(ctx, of)
	if err != nil || kv == nil {
		return nil, err
	}
	return readSecret(of, kv)
}

// secretAt is the key's value, or nil.
func (c *Config) secretAt(ctx context.Context, of federation.ObjectKey) (*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	answer, err := c.read.get(ctx, secretKey(of))
	if err != nil {
		return nil, fault("reading a secret", err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return answer.Kvs[0], nil
}

var errOtherSecret = errors.New("it is the secret of another object")

func readSecret(of federation.ObjectKey, kv *mvccpb.KeyValue) ([]byte, error) {
	var v secretValue
	err := unseal(kv.Value, &v)
	if err == nil && v.Key != of {
		err = errOtherSecret
	}
	if err != nil {
		return nil, &damage{"the secret of " + of.String(), err}
	}
	return v.Sealed, nil
}

// SecretsOf is part of config.Secrets. Keys that are none of isthmus are passed
// over.
func (c *Config) SecretsOf(ctx context.Context) ([]federation.ObjectKey, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	var all []federation.ObjectKey
	err := c.read.scan(ctx, secretRoot, clientv3.GetPrefixRangeEnd(secretRoot), func(kv *mvccpb.KeyValue) error {
		if k, err := readPath(string(kv.Key), secretRoot); err == nil {
			all = append(all, k)
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, fault("looking for secrets", err)
	}
	slices.SortFunc(all, federation.ObjectKey.Compare)
	return all, nil
}

// Reseal is part of config.Secrets.
func (c *Config) Reseal(ctx context.Context, old, fresh config.Secret) (bool, error) {
	if old.Of != fresh.Of || len(fresh.Sealed) == 0 {
		return false, fmt.Errorf("resealing a secret of %s: it must stay one of that object", old.Of)
	}
	kv, err := c.secretAt(ctx, old.Of)
	if err != nil || kv == nil {
		return false, err
	}
	if now, err := readSecret(old.Of, kv); err != nil || string(now) != string(old.Sealed) {
		return false, err
	}
	value, err := secretValue{fresh.Of, fresh.Sealed}.encode()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	key := secretKey(old.Of)
	answer, err := c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision), clientv3.Compare(clientv3.Value(epochKey), "=", c.store.epoch)).
		Then(clientv3.OpPut(key, value)).Commit()
	if err != nil {
		return false, fault("resealing a secret", err)
	}
	return answer.Succeeded, nil
}
