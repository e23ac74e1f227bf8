package resolve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
	if delete(z.names, name); len(to) > 0 {
		z.names[name] = nil
	}
	for _, a := range to {
		z.names[name] = append(z.names[name], netip.MustParseAddr(a))
	}
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

func TestNamesOfGatewaysAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{names: map[string][]netip.Addr{}}
		z.set("gw.example", "192.0.2.2", "192.0.2.1", "192.0.2.2")
		a := federation.NewAggregate(nil)
		operator := a.Open(federation.ShardKey{Provider: federation.Operator})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- New(Options{Snapshots: a, To: a.Open(federation.ShardKey{Provider: "Resolver"}), Resolver: z}).Run(ctx)
		}()
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			n, _ := a.Latest().Network("n2")
			var got []string
			for _, g := range n.Gateways {
				got = append(got, g.Address.Addr().String())
			}
			if fmt.Sprint(got) != want {
				t.Errorf("the gateways are %v, want %s", got, want)
			}
		}
		operator.Update(gateways("gw.example"))
		expect("[192.0.2.1 192.0.2.2]")
		z.set("gw.example", "192.0.2.3")
		<-time.After(DefaultEvery - time.Second) //nolint:forbidigo // the clock is that of the test
		expect("[192.0.2.1 192.0.2.2]")
		<-time.After(2 * time.Second) //nolint:forbidigo // the clock is that of the test
		expect("[192.0.2.3]")
		z.set("gw.example")
		<-time.After(3 * DefaultEvery) //nolint:forbidigo // the clock is that of the test
		expect("[192.0.2.3]")          // the last good answer stays
		z.set("gw.example", "192.0.2.4")
		<-time.After(again + time.Second) //nolint:forbidigo // the clock is that of the test
		expect("[192.0.2.4]")
		operator.Update(gateways("other.example"))
		expect("[]")
		synctest.Wait()
		before := z.asked
		operator.Update(gateways())
		<-time.After(10 * DefaultEvery) //nolint:forbidigo // the clock is that of the test
		if synctest.Wait(); z.asked != before {
			t.Errorf("names that nobody needs were asked for %d times", z.asked-before)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
