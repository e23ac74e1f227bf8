// Package etcd is the hub's store of record: an etcd inside the process, which
// listens nowhere, or a client of one outside.
package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Options say which etcd. Without Endpoints it runs inside the process.
type Options struct {
	DataDir   string      // of the embedded etcd; no other process may use it meanwhile
	Endpoints []string    // of an etcd outside; DataDir is not used then
	TLS       *tls.Config // for https endpoints
	Logger    *slog.Logger
	Patience  time.Duration // how long Open waits; 0: 30 s embedded, 5 s outside
	Quota     int64         // bytes that an embedded etcd may hold; 0: 2 GiB
	// New begins with an empty store where the folder is gone that held one. Without
	// it that is an error.
	New bool
}

// Store is an open store.
type Store struct {
	server *embed.Etcd // nil: outside
	dir    string      // of the embedded one
	statfs func(path string, buf *syscall.Statfs_t) error
	logger *slog.Logger
	inside *inside     // nil: outside
	usable atomic.Bool // the folder of an embedded one that has ended can be written again
	client *clientv3.Client
	tries  *tries // nil: embedded
	epoch  string
}

// epochKey holds a random name that the store got when it was first opened: it
// tells this store from any other, also from its own restored copy's readers.
const epochKey = "/isthmus/v1/epoch"

// Open starts or connects the store and returns when it answers. Close must
// follow. A damaged data folder is an error.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
		if len(o.Endpoints) > 0 {
			o.Patience = 5 * time.Second
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	open := func() (*Store, error) {
		if err := initialised(ctx, o); err != nil {
			return nil, fmt.Errorf("making the embedded etcd in %s: %w", o.DataDir, err)
		}
		if err := errors.Join(openable(o.DataDir), intact(o.DataDir)); err != nil {
			return nil, fmt.Errorf("opening the embedded etcd in %s: %w", o.DataDir, err)
		}
		return embedded(ctx, o)
	}
	if len(o.Endpoints) > 0 {
		open = func() (*Store, error) { return outside(o) }
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	s.epoch, err = s.readEpoch(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s; check the endpoints, and that etcd runs and accepts the hub's credentials: %w", o.Patience, err)
		}
		err = fmt.Errorf("reading from etcd%s: %w", at(o.Endpoints), err)
		return nil, errors.Join(err, s.Close())
	}
	if s.server != nil {
		if err := sameStore(o.DataDir, s.epoch); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func at(endpoints []string) string {
	if len(endpoints) == 0 {
		return ""
	}
	return " at " + strings.Join(endpoints, ", ")
}

func outside(o Options) (*Store, error) {
	t := newTries(len(o.Endpoints))
	client, err := clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.TLS, Logger: newLogger(o.Logger), DialTimeout: o.Patience,
		// gRPC sends keepalives every 10 s at most; watchMembers notices sooner.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		MaxUnaryRetries: 1, // tries repeats what is safe to repeat
		DialOptions:     append(t.options(), grpc.WithConnectParams(reconnects())),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd%s: %w", at(o.Endpoints), err)
	}
	return &Store{client: client, tries: t}, nil
}

// reconnects are the pauses between attempts to connect: a store that is back is
// used soon.
func reconnects() grpc.ConnectParams {
	p := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}
	p.Backoff.BaseDelay, p.Backoff.MaxDelay = 100*time.Millisecond, 2*time.Second
	return p
}

// readEpoch returns the store's epoch and makes one in an empty store.
func (s *Store) readEpoch(ctx context.Context) (string, error) {
	known, err := s.client.Get(ctx, epochKey) // a full store refuses even a put that may not be made
	if err != nil {
		return "", err
	}
	if len(known.Kvs) == 1 {
		return string(known.Kvs[0].Value), nil
	}
	fresh := rand.Text()
	answer, err := s.client.Txn(repeatably(ctx)).
		If(clientv3.Compare(clientv3.CreateRevision(epochKey), "=", 0)).
		Then(clientv3.OpPut(epochKey, fresh)).
		Else(clientv3.OpGet(epochKey)).
		Commit()
	if err != nil {
		return "", err
	}
	if answer.Succeeded {
		return fresh, nil
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) != 1 {
		return "", fmt.Errorf("key %s went away meanwhile", epochKey)
	}
	return string(found[0].Value), nil
}

// Epoch names this store. It stays over restarts.
func (s *Store) Epoch() string { return s.epoch }

// Client speaks to the store. It is closed by Close.
func (s *Store) Client() *clientv3.Client { return s.client }

// lookAgain is the time between two looks whether the folder of a store that ended can be
// written again.
const lookAgain = 2 * time.Second

// Run blocks until the context ends, and returns nil, or until an embedded store fails in a
// way that a restart may cure, and returns why. One that ended at its disk would not start
// either: the hub goes on without it, and Refusal says why.
func (s *Store) Run(ctx context.Context) error {
	if s.server == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.inside.failed:
	case <-s.server.Server.StopNotify():
		s.inside.fail("it stopped; its last log lines say why")
	case err := <-s.server.Err():
		s.inside.fail(err.Error())
	}
	if why := s.inside.ended(); atDisk(why) == "" {
		return fmt.Errorf("running the embedded etcd in %s: %w", s.dir, why)
	}
	s.outlive(ctx, lookAgain)
	return nil
}

// closeWithin is how long Close waits for the embedded etcd. What was acknowledged is
// on disk: only a disk that does not answer takes longer.
const closeWithin = 15 * time.Second

// Close ends the store and waits for it, unless it has failed for good or its disk
// does not answer. What was written is on disk.
func (s *Store) Close() error {
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if s.server != nil {
		err = errors.Join(err, ends(func() {
			if s.inside.end() { // waits for calls that are under way
				s.server.Close()
			}
		}, closeWithin))
	}
	return err
}

// ends calls the function and waits for it at most that long.
func ends(do func(), within time.Duration) error {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("closing the embedded etcd: it did not end within %s; look whether the disk of its folder answers; changes that were acknowledged are stored", within)
	}
}
