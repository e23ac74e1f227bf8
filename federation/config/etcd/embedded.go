package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"isthmus.dev/isthmus/internal/durable"
)

// initialised makes sure that the folder holds a complete store. An etcd that
// ends during its very first start leaves one behind that never starts again:
// therefore the first start is made aside, and what came of it is moved.
func initialised(ctx context.Context, o Options) error {
	dir := o.DataDir
	_, err := os.Stat(filepath.Join(dir, "member"))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if o.New {
		o.Logger.Warn("beginning with an empty store, as --new-store says", "dir", dir)
	} else if err := vanished(dir); err != nil {
		return err
	}
	aside := filepath.Clean(dir) + ".new"
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Remove(epochFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.DataDir = aside
	s, err := embedded(ctx, o)
	if err != nil {
		return err
	}
	_, err = s.readEpoch(ctx)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	return durable.Rename(aside, dir)
}

// embedded starts an etcd of one member without any listener: only this process
// can reach it.
func embedded(ctx context.Context, o Options) (*Store, error) {
	in := newInside()
	logger := newLogger(o.Logger).WithOptions(zap.WithPanicHook(in), zap.WithFatalHook(in))
	started := make(chan *Store, 1)
	failed := make(chan error, 1)
	opening := openings.Add(1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				in.fail(fmt.Sprint(p))
			}
		}()
		server, err := embed.StartEtcd(embeddedConfig(o, logger))
		if err != nil {
			failed <- err
			return
		}
		started <- &Store{server: server, dir: o.DataDir, statfs: syscall.Statfs, inside: in, logger: o.Logger}
	}()
	var err error
	select {
	case s := <-started:
		err = s.awaitReady(ctx, opening)
		if err == nil {
			return s, nil
		}
	case err = <-failed:
		if damaged(err) {
			err = damagedBy(err)
		}
	case <-in.failed:
		err = damagedBy(in.ended())
	case <-ctx.Done():
		err = notReady(ctx)
		if errors.Is(ctx.Err(), context.Canceled) {
			closeStarted(started, failed, in)
		}
	}
	return nil, fmt.Errorf("opening the embedded etcd in %s: %w", o.DataDir, err)
}

// damaged reports whether etcd cannot make sense of its own files. What the file system
// refuses, such as for want of rights or of file descriptors, damages nothing.
func damaged(err error) bool {
	var ofFile *fs.PathError
	var ofSystem *os.SyscallError
	return !errors.As(err, &ofFile) && !errors.As(err, &ofSystem)
}

// damagedBy says what can be done. Nobody should remove a store that is in order: a disk
// that refuses writes damages nothing, and a fault of the program may be over at the next start.
func damagedBy(why error) error {
	if advice := atDisk(why); advice != "" {
		return fmt.Errorf("%w: %s, and start again; %s", why, advice, notDamaged)
	}
	return fmt.Errorf("%w: start again; if that fails in the same way, the data is damaged: restore a backup of the folder, or remove it and start once with --new-store", why)
}

// closeStarted waits for the end of a start that is not wanted any more. After a
// time-out it does not wait: what hangs stays until the process ends.
func closeStarted(started <-chan *Store, failed <-chan error, in *inside) {
	select {
	case s := <-started:
		s.server.Close()
	case <-failed:
	case <-in.failed:
	}
}

// awaitReady waits until the server has elected itself, and closes it if it
// never does.
func (s *Store) awaitReady(ctx context.Context, opening int64) error {
	electing, stop := context.WithCancel(ctx)
	defer stop()
	go elect(electing, s.server.Server, opening)
	var err error
	select {
	case <-s.server.Server.ReadyNotify():
		s.client = insideClient(s.server, s.inside)
		return nil
	case <-s.server.Server.StopNotify():
		err = errors.New("it stopped at once; its last log lines say why")
	case <-s.inside.failed:
		return damagedBy(s.inside.ended())
	case <-ctx.Done():
		err = notReady(ctx)
	}
	s.server.Close()
	return err
}

// notReady is the error of a start that took too long. One reason is that etcd
// waits for what its log of writes does not have.
func notReady(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("it was not ready in time: %w", ctx.Err())
	}
	return fmt.Errorf("it was not ready in time (%w); if a part of the folder was replaced, restore a backup of the whole folder", ctx.Err())
}

// batched is how often etcd moves what its log of writes holds into the database
// file. The log is what survives a crash, so nothing waits for this; etcd's default
// of 100 ms wakes an idle hub ten times a second (R65).
const batched = time.Second

func embeddedConfig(o Options, logger *zap.Logger) *embed.Config {
	// The member's address is only a name: nothing listens on it.
	name := url.URL{Scheme: "http", Host: "isthmus.invalid:2380"}
	c := embed.NewConfig()
	c.Name = "isthmus"
	c.Dir, c.QuotaBackendBytes = o.DataDir, o.Quota
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.AdvertisePeerUrls, c.AdvertiseClientUrls = []url.URL{name}, nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, compactedFor.String()
	// A single member needs no heartbeats, and each tick wakes an idle hub (R65). Its
	// election does not wait for them: awaitReady starts it.
	c.TickMs, c.ElectionMs = 500, 2500
	c.BackendBatchInterval = batched
	// Of every 100 writes Raft keeps in memory what other members may lack. There are none.
	c.SnapshotCatchUpEntries = 1
	c.AuthToken = "" // no user can log in
	return c
}
