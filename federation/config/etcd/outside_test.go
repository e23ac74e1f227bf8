package etcd_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// member is an etcd outside, which can be stopped and started again.
type member struct{ *testbed.Etcd }

// cluster starts n members on the loopback interface.
func cluster(t *testing.T, n int) []member {
	t.Helper()
	var members []member
	for _, e := range testbed.StartEtcdCluster(t, n).Members {
		members = append(members, member{e})
	}
	return members
}

func (m member) endpoint() string { return m.URL }

// link is a TCP link that can be cut and mended.
type link struct {
	mu     sync.Mutex
	to     string
	cut    bool
	frozen bool // takes connections and says nothing
	open   map[net.Conn]bool
	listen net.Listener
	group  sync.WaitGroup
}

func linkTo(t *testing.T, m member) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{to: strings.TrimPrefix(m.URL, "http://"), listen: l, open: map[net.Conn]bool{}}
	k.group.Go(k.accept)
	t.Cleanup(func() {
		l.Close()
		k.set(true, false)
		k.group.Wait()
	})
	return k
}

func (k *link) endpoint() string { return "http://" + k.listen.Addr().String() }

// set cuts the link, or lets new connections hang.
func (k *link) set(cut, frozen bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut, k.frozen = cut, frozen
	for c := range k.open {
		c.Close()
	}
	clear(k.open)
}

func (k *link) accept() {
	for {
		in, err := k.listen.Accept()
		if err != nil {
			return
		}
		k.mu.Lock()
		k.open[in] = true
		cut, frozen := k.cut, k.frozen
		k.mu.Unlock()
		if frozen {
			continue
		}
		if cut {
			in.Close()
			continue
		}
		out, err := net.Dial("tcp", k.to)
		if err != nil {
			in.Close()
			continue
		}
		k.mu.Lock()
		k.open[out] = true
		k.mu.Unlock()
		k.group.Go(func() { pipe(in, out) })
		k.group.Go(func() { pipe(out, in) })
	}
}

func pipe(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

func reach(t *testing.T, endpoints ...string) *etcd.Store {
	t.Helper()
	return opened(t, etcd.Options{Endpoints: endpoints})
}
