package gatewaydns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone is a resolver that a test writes.
type zone struct {
	mu    sync.Mutex
	names map[string][]netip.Addr
	asked int
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	found, ok := z.names[host]
	if !ok {
		return nil, errors.New("no such name")
	}
	return found, nil
}

func (z *zone) set(name string, to ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.names, name)
	if len(to) > 0 {
		z.names[name] = nil
	}
	for _, a := range to {
		z.names[name] = append(z.names[name], netip.MustParseAddr(a))
	}
}

// empty has the name resolve to no address.
func (z *zone) empty(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names[name] = []netip.Addr{}
}

func gateways(names ...string) federation.Edit {
	spec := &federation.NetworkObject{}
	for _, n := range names {
		spec.Gateways = append(spec.Gateways, federation.NetworkGateway{Hostname: n})
	}
	key := federation.ObjectKey{Group: federation.MeshGroup, Kind: "Network", Name: "n2"}
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{key: {Key: key, Digest: fmt.Sprint(names), Spec: spec}}
	return e
}

// follower is a Keeper over an aggregate, inside a bubble of synctest.
type follower struct {
	t         *testing.T
	zone      *zone
	aggregate *federation.Aggregate
	operator  *federation.Writer
	log       bytes.Buffer
	end       func()
}

func follow(t *testing.T) *follower {
	a := federation.NewAggregate(nil)
	f := &follower{
		t: t, zone: &zone{names: map[string][]netip.Addr{}}, aggregate: a,
		operator: a.Open(federation.ShardKey{Provider: federation.Operator}),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	keeper := New(Options{
		Snapshots: a, To: a.Open(federation.ShardKey{Provider: "Resolver"}), Resolver: f.zone,
		Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	go func() { done <- keeper.Run(ctx) }()
	f.end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return f
}

// pass lets time pass on the bubble's clock.
func (f *follower) pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func (f *follower) expect(gateways, refused string) {
	f.t.Helper()
	synctest.Wait()
	n, _ := f.aggregate.Latest().Network("n2")
	var got, not []string
	for _, g := range n.Gateways {
		got = append(got, g.Address.Addr().String())
	}
	for _, r := range n.Refused {
		not = append(not, r.Gateway+" "+r.Why)
	}
	if fmt.Sprint(got) != gateways || fmt.Sprint(not) != refused {
		f.t.Errorf("the gateways are %v and %q refused, want %s and %s", got, not, gateways, refused)
	}
}

func TestNamesOfGatewaysAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t)
		defer f.end()
		f.zone.set("gw.example", "192.0.2.2", "192.0.2.1", "192.0.2.2")
		f.operator.Update(gateways("gw.example"))
		f.expect("[192.0.2.1 192.0.2.2]", "[]")
		f.zone.set("gw.example", "192.0.2.3")
		f.pass(DefaultEvery - time.Second)
		f.expect("[192.0.2.1 192.0.2.2]", "[]")
		f.pass(2 * time.Second)
		f.expect("[192.0.2.3]", "[]")
		f.zone.set("other.example", "192.0.2.7")
		f.operator.Update(gateways("other.example"))
		f.expect("[192.0.2.7]", "[]")
		before := f.zone.asked
		f.operator.Update(gateways())
		f.pass(10 * DefaultEvery)
		if f.zone.asked != before {
			t.Errorf("names that nobody needs were asked for %d times", f.zone.asked-before)
		}
	})
}

// TestF87NamesThatStandForNothingGood: the last good answer stays, whatever the
// name resolves to now, and what is refused is shown.
func TestF87NamesThatStandForNothingGood(t *testing.T) {
	const good = "[192.0.2.3]"
	for name, c := range map[string]struct {
		answer  []string // none: there is no such name
		empty   bool     // the name exists without an address
		want    string
		refused string
		logged  string
	}{
		"gone":           {nil, false, good, "[]", "what was resolved last stays"},
		"no address":     {nil, true, good, "[]", "it has no address"},
		"loopback":       {[]string{"127.0.0.1"}, false, good, "[127.0.0.1:15443 is a loopback address]", "may not be used"},
		"loopback, IPv6": {[]string{"::1"}, false, good, "[[::1]:15443 is a loopback address]", "may not be used"},
		"metadata": {
			[]string{"169.254.169.254"},
			false, good, "[169.254.169.254:15443 is a link-local address]",
			"may not be used",
		},
		"metadata, elsewhere": {
			[]string{"100.100.100.200", "fd00:ec2::254"},
			false, good,
			"[100.100.100.200:15443 is a cloud metadata address [fd00:ec2::254]:15443 is a cloud metadata address]", "may not be used",
		},
		"loopback beside another": {
			[]string{"127.0.0.1", "192.0.2.4"},
			false, "[192.0.2.4]",
			"[127.0.0.1:15443 is a loopback address]", "may not be used",
		},
		"another": {[]string{"192.0.2.4"}, false, "[192.0.2.4]", "[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := follow(t)
				defer f.end()
				f.zone.set("gw.example", "192.0.2.3")
				f.operator.Update(gateways("gw.example"))
				f.expect(good, "[]")
				f.zone.set("gw.example", c.answer...)
				if c.empty {
					f.zone.empty("gw.example")
				}
				f.pass(3 * DefaultEvery)
				f.expect(c.want, c.refused)
				if said := f.log.String(); c.logged == "" && said != "" || !strings.Contains(said, c.logged) || strings.Count(said, "\n") > 1 {
					t.Errorf("the log has %q, want %q once", said, c.logged)
				}
				f.zone.set("gw.example", "192.0.2.5")
				f.pass(DefaultEvery + time.Second)
				f.expect("[192.0.2.5]", "[]")
			})
		})
	}
}
