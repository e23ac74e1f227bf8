package etcd_test

import (
	"io"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/etcd"
)

func loopback(t *testing.T) url.URL {
	t.Helper()
	at := netip.MustParseAddr("127.0.0.1")
	return url.URL{Scheme: "http", Host: netip.AddrPortFrom(at, uint16(testbed.FreePort(t, nil, at))).String()}
}

// member is an etcd outside, which can be stopped and started again.
type member struct {
	config *embed.Config
	server *embed.Etcd
}

// cluster makes n members on the loopback interface; start starts them.
func cluster(t *testing.T, n int) []*member {
	t.Helper()
	members := make([]*member, n)
	initial := ""
	for i := range members {
		c := embed.NewConfig()
		peer, client := loopback(t), loopback(t)
		c.Name, c.Dir = string(rune('a'+i)), filepath.Join(t.TempDir(), "member")
		c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
		c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		c.UnsafeNoFsync = true
		initial += "," + c.Name + "=" + peer.String()
		members[i] = &member{config: c}
	}
	for _, m := range members {
		m.config.InitialCluster = initial[1:]
		t.Cleanup(m.stop)
	}
	return members
}

func startAll(t *testing.T, members ...*member) {
	t.Helper()
	for _, m := range members {
		c := *m.config
		var err error
		if m.server, err = embed.StartEtcd(&c); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range members {
		<-m.server.Server.ReadyNotify()
	}
}

func (m *member) stop() {
	if m.server != nil {
		m.server.Server.HardStop() // without waiting for its clients
		m.server.Close()
		m.server = nil
	}
}

func (m *member) endpoint() string { return m.config.AdvertiseClientUrls[0].String() }

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

func linkTo(t *testing.T, m *member) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{to: m.config.AdvertiseClientUrls[0].Host, listen: l, open: map[net.Conn]bool{}}
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
