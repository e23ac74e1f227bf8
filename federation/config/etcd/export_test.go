package etcd

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// StopAt makes the n-th next step of that name fail with the error, as if the
// process had ended there. It returns a channel that is closed then.
func (c *Config) StopAt(name string, n int, err error) <-chan struct{} {
	stopped := make(chan struct{})
	c.step.reach = func(step string) error {
		if step != name {
			return nil
		}
		n--
		if n != 0 {
			return nil
		}
		close(stopped)
		return err
	}
	return stopped
}

// Steps calls f at each step.
func (c *Config) Steps(f func(name string)) {
	c.step.reach = func(name string) error { f(name); return nil }
}

// Seal makes a value that isthmus may have written.
func Seal(payload []byte) string { return seal(payload) }

// Payload opens it.
func Payload(value []byte) ([]byte, error) { return payload(value) }

// FailAt has each step of that name fail with the error that f gives, if any.
func (c *Config) FailAt(name string, f func() error) {
	c.step.reach = func(step string) error {
		if step != name {
			return nil
		}
		return f()
	}
}

// AskMembers asks each member once how it is.
func (c *Config) AskMembers(ctx context.Context) error {
	members, err := c.health.members()
	if err != nil {
		return err
	}
	defer closeAll(members)
	c.health.ask(ctx, members)
	return ctx.Err()
}

// Link is a connection to a member.
type Link struct{ *link }

// Closed reports whether the hub closed it.
func (l Link) Closed() bool { return errors.Is(l.SetDeadline(time.Time{}), net.ErrClosed) }

// Links are the connections to a member.
func (s *Store) Links(endpoint string) (all []Link) {
	s.tries.mu.Lock()
	defer s.tries.mu.Unlock()
	for l := range s.tries.links {
		if l.to == hostOf(endpoint) {
			all = append(all, Link{l})
		}
	}
	return all
}

// ErrEnded is the error of a store that ended.
var ErrEnded = errEnded

// End has the embedded etcd fail for that reason. In truth it runs until the test is over.
func (s *Store) End(t testing.TB, why string) {
	t.Cleanup(s.server.Close)
	s.inside.fail(why)
}

// Hang asks the embedded etcd what it answers only when the question is canceled.
func (s *Store) Hang(ctx context.Context) <-chan error {
	asked, answer := make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- s.inside.ask(ctx, func(ctx context.Context) error { close(asked); <-ctx.Done(); return ctx.Err() })
	}()
	<-asked
	return answer
}

// Usable reports whether the folder of a store that ended was found writable.
func (s *Store) Usable() bool { return s.usable.Load() }

// SetFree has the disk of an embedded etcd be one with so many bytes left, on which nothing is read-only.
func (s *Store) SetFree(free func() uint64) {
	s.statfs = func(_ string, disk *syscall.Statfs_t) error {
		*disk = syscall.Statfs_t{Bsize: 1, Bavail: free()}
		return nil
	}
}

// DiskReserve is what must be free for a change.
const DiskReserve = diskReserve
