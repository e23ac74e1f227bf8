package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// keptWrites is how many writes etcd's Raft keeps in memory before it drops those
	// that are applied. etcd has no setting for it.
	keptWrites = 100
	// largeWrite is how many bytes of them are worth dropping at once.
	largeWrite = 1 << 20
	// dropFor is how long a commit may take longer for it at its end, and dropMeanwhile
	// each time before.
	dropFor, dropMeanwhile = 5 * time.Second, time.Second
)

// wrote records how many bytes a transaction has put into the store. After a large
// one it has an embedded etcd drop them from memory (R63): Raft keeps them for other
// members, of which there are none, until enough writes have followed, and the buffer
// of the database file until one write of its own kind has not.
func (s *Store) wrote(ctx context.Context, size int, atMost time.Duration) {
	if s.server == nil || size < largeWrite {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	// A transaction whose condition never holds changes nothing, not even etcd's
	// revision, and is a write to Raft all the same.
	never := clientv3.Compare(clientv3.Version(epochKey), "<", 0)
	var writes sync.WaitGroup
	for range keptWrites + 1 { // together, so that few of them wait for the disk
		writes.Go(func() {
			_, _ = s.client.Txn(ctx).If(never).Then(clientv3.OpDelete(sharedRoot + "none")).Commit() // it only saves memory
		})
	}
	writes.Wait()
	if ctx.Err() != nil {
		return // the disk is slow: the memory goes with later writes
	}
	_ = s.inside.ask(ctx, func(context.Context) error { // it only saves memory
		for range 2 { // the first commit empties the buffer, the second drops its room
			s.server.Server.Backend().ForceCommit()
		}
		return nil
	})
}
