package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// EtcdCluster is an etcd cluster of several members on loopback. Clients reach each
// member through a proxy of its own, so that a member can be cut off from them
// while it goes on with the others.
type EtcdCluster struct {
	Members []*Etcd
	Links   []*Proxy // to the member of the same index
	t       testing.TB
}

// StartEtcdCluster runs n members and returns when all are healthy. The arguments
// are in addition to those of the testbed.
func StartEtcdCluster(t testing.TB, n int, args ...string) *EtcdCluster {
	t.Helper()
	c := &EtcdCluster{t: t}
	at := netip.MustParseAddr("127.0.0.1")
	peers, names := make([]string, n), make([]string, n)
	for i := range n {
		client := netip.AddrPortFrom(at, uint16(FreePort(t, nil, at)))
		c.Members = append(c.Members, newEtcd(t, EtcdOptions{}, fmt.Sprintf("etcd-%d", i), client))
		c.Links = append(c.Links, StartProxy(t, client.String()))
		peers[i] = "http://" + netip.AddrPortFrom(at, uint16(FreePort(t, nil, at))).String()
		names[i] = c.Members[i].member + "=" + peers[i]
	}
	for i, e := range c.Members {
		program := e.program(EtcdOptions{Name: e.member, ExtraArgs: args}, peers[i], strings.Join(names, ","))
		ready := program.Ready
		program.Ready = nil // none is healthy before most of them run
		e.Process = StartProgram(t, program)
		e.options.Ready = ready
	}
	for _, e := range c.Members {
		WaitFor(t, readyLimit, e.member+" to be healthy", func() error { return e.healthy(t.Context()) })
	}
	return c
}

// Endpoints are the URLs of the links.
func (c *EtcdCluster) Endpoints() []string {
	var all []string
	for _, l := range c.Links {
		all = append(all, "http://"+l.Addr())
	}
	return all
}

// Leader returns the index of the leader, as the members that answer see it.
func (c *EtcdCluster) Leader() int {
	c.t.Helper()
	leader := -1
	WaitFor(c.t, readyLimit, "a leader of etcd", func() error {
		for i, e := range c.Members {
			if led, err := e.leads(); err == nil && led {
				leader = i
				return nil
			}
		}
		return errors.New("no member says that it leads")
	})
	return leader
}

// Term is the newest term that a member knows: another leader has another one.
func (c *EtcdCluster) Term() (newest uint64) {
	c.t.Helper()
	for _, e := range c.Members {
		s, err := e.status()
		if err == nil {
			newest = max(newest, s.Term)
		}
	}
	return newest
}

// Follower returns the index of a member that does not lead.
func (c *EtcdCluster) Follower() int {
	c.t.Helper()
	return (c.Leader() + 1) % len(c.Members)
}

func (e *Etcd) leads() (bool, error) {
	s, err := e.status()
	return s.Leader != "" && s.Leader == s.Header.MemberID, err
}

type etcdStatus struct {
	Leader string
	Term   uint64 `json:"raftTerm,string"`
	Header struct {
		MemberID string `json:"member_id"`
	}
}

func (e *Etcd) status() (s etcdStatus, err error) {
	err = e.call("maintenance/status", map[string]any{}, &s)
	return s, err
}
