package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

const (
	readAllRules = `service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`
	noWebRules   = `service "consul" { policy = "read" } service_prefix "other" { policy = "read" } node_prefix "" { policy = "read" }`
	noNodeRules  = `service_prefix "" { policy = "read" } node "consul" { policy = "read" }`
)

// tokenFile replaces the file from which the hub reads its token.
type tokenFile struct{ text atomic.Value }

func (f *tokenFile) write(token string) { f.text.Store(token) }

func (f *tokenFile) read() (string, error) { return f.text.Load().(string), nil }

// startTokenRig starts a Consul with ACLs. The hub reads a token from the file, with the policy
// of that name, which lets it read everything.
func startTokenRig(t *testing.T, name string, wait time.Duration) (r *rig, f *tokenFile, p *policy, accessor string) {
	t.Helper()
	f = &tokenFile{}
	r = startRig(t, testbed.ConsulOptions{ACL: true}, Options{Token: f.read, Wait: wait})
	p, token, accessor := r.newPolicy(t, name, readAllRules)
	f.write(token)
	return r, f, p, accessor
}

// policy is one that a test changes while a token has it.
type policy struct {
	r    *rig
	name string
	id   string
}

func (r *rig) newPolicy(t testing.TB, name, rules string) (p *policy, token, accessor string) {
	t.Helper()
	p = &policy{r: r, name: name}
	var made struct{ ID, SecretID, AccessorID string }
	r.Put("/v1/acl/policy", map[string]any{"Name": name, "Rules": rules}).Decode(t, &made)
	p.id = made.ID
	r.Put("/v1/acl/token", map[string]any{"Policies": []map[string]any{{"Name": name}}}).Decode(t, &made)
	return p, made.SecretID, made.AccessorID
}

func (p *policy) set(rules string) {
	p.r.Put("/v1/acl/policy/"+p.id, map[string]any{"ID": p.id, "Name": p.name, "Rules": rules})
}

func TestF63BC11LostRightsDeleteNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lose func(t *testing.T, r *rig, p *policy, accessor string, f *tokenFile)
	}{
		{"rights to one service", func(_ *testing.T, _ *rig, p *policy, _ string, _ *tokenFile) { p.set(noWebRules) }},
		{"rights to nodes", func(_ *testing.T, _ *rig, p *policy, _ string, _ *tokenFile) { p.set(noNodeRules) }},
		{"all rights", func(_ *testing.T, _ *rig, p *policy, _ string, _ *tokenFile) { p.set("") }},
		{"token deleted", func(t *testing.T, r *rig, _ *policy, accessor string, _ *tokenFile) { r.revoke(t, accessor) }},
		{"token file empty", func(_ *testing.T, _ *rig, _ *policy, _ string, f *tokenFile) { f.write("") }},
		{"token unknown", func(_ *testing.T, _ *rig, _ *policy, _ string, f *tokenFile) {
			f.write("00000000-1111-2222-3333-444444444444")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, f, p, accessor := startTokenRig(t, "hub", 2*time.Second)
			token, _ := f.read()
			r.fill("web", 3)
			r.fill("other", 1)
			recorder, _ := registrytest.Start(t, r)
			recorder.WaitPhase(t, federation.Ready)
			recorder.Always(never(r, "web-000", "web-001", "web-002", "other-000"))
			edits := recorder.View().Edits
			c.lose(t, r, p, accessor, f)
			v := staleBy(t, recorder, "tokenFile") // It says what to do.
			if strings.Contains(v.Status.Message, token) {
				t.Errorf("the status says %q", v.Status.Message)
			}
			if v.Edits != edits && !stopped(recorder) {
				t.Errorf("%d edits of a token without rights", v.Edits-edits)
			}
			_, healed, _ := r.newPolicy(t, "healed", readAllRules)
			f.write(healed)
			recorder.WaitPhase(t, federation.Ready)
		})
	}
}

func TestWrongTokenAtTheStartIsARefusal(t *testing.T) {
	t.Parallel()
	f := &tokenFile{}
	r := startRig(t, testbed.ConsulOptions{ACL: true}, Options{Token: f.read})
	_, good, _ := r.newPolicy(t, "hub", readAllRules)
	_, poor, _ := r.newPolicy(t, "poor", noWebRules)
	r.fill("web", 1)
	for name, token := range map[string]string{"none": "", "unknown": "00000000-1111-2222-3333-444444444444", "poor": poor} {
		f.write(token)
		recorder, stop := registrytest.Start(t, r)
		v := recorder.WaitPhase(t, federation.Failed)
		if !strings.Contains(v.Status.Message, "tokenFile") || token != "" && strings.Contains(v.Status.Message, token) {
			t.Errorf("%s: the status says %q, want what to do with tokenFile", name, v.Status.Message)
		}
		f.write(good)
		if v := recorder.WaitPhase(t, federation.Ready); v.Services[r.Key("web-000")] == nil {
			t.Errorf("%s: the right token shows %v", name, v.Services)
		}
		stop()
	}
}

func TestP21TokenRotation(t *testing.T) {
	t.Parallel()
	r, f, _, accessor := startTokenRig(t, "a", time.Second)
	r.fill("web", 3)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	for _, name := range []string{"b", "c", "d"} {
		_, next, nextAccessor := r.newPolicy(t, name, readAllRules)
		f.write(next)
		r.revoke(t, accessor)
		accessor = nextAccessor
		r.register("web-000", "web-000", "10.20.0.1", 8080, withTags("version|"+name))
		recorder.Wait(t, "a change after a rotation", r.has("web-000", "version", name))
	}
	for _, s := range recorder.Statuses() {
		if s.Phase != federation.Syncing && s.Phase != federation.Ready && !isUnanswered(s) {
			t.Errorf("a rotation brought %s: %s", s.Phase, s.Message)
		}
	}
}

func TestF66AnotherConsulIsHeld(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.fill("web", 3)
	recorder, stop := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	edits := recorder.View().Edits
	r.Restart() // in memory: an empty Consul with another server
	v := recorder.WaitPhase(t, federation.Held)
	if v.Edits != edits || len(v.Services) != 3 || !strings.Contains(v.Status.Message, "another Consul") {
		t.Errorf("another Consul: %d edits, %d services, %q", v.Edits-edits, len(v.Services), v.Status.Message)
	}
	stop()
	r.options.Expect = v.Identity.UID
	again, _ := registrytest.Start(t, r)
	if v := again.WaitPhase(t, federation.Held); v.Edits != 0 {
		t.Errorf("%d edits from a Consul that is not the known one", v.Edits)
	}
}

// TestF40SilenceOfARealConsul: within which time is TestF68Silence's matter.
func TestF40SilenceOfARealConsul(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.fill("web", 3)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Always(never(r, "web-000"))
	for _, unanswered := range []struct {
		name       string
		begin, end func()
	}{
		{"half-open link", r.proxy.Blackhole, r.proxy.Pass},
		{"frozen server", r.Pause, r.Resume},
	} {
		edits := recorder.View().Edits
		unanswered.begin()
		if v := recorder.WaitPhase(t, federation.Stale); v.Edits != edits || v.Status.Message == "" {
			t.Errorf("%s: %d edits, message %q", unanswered.name, v.Edits-edits, v.Status.Message)
		}
		unanswered.end()
		recorder.WaitPhase(t, federation.Ready)
	}
}

// meter counts connections and how many are open at most.
type meter struct {
	mu              sync.Mutex
	open, most, all int
}

func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	m.count(1)
	return &metered{Conn: c, m: m}, nil
}

func (m *meter) count(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += by
	m.most = max(m.most, m.open)
	m.all += max(by, 0)
}

func (m *meter) seen() (most, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most, m.all
}

type metered struct {
	net.Conn
	m    *meter
	once sync.Once
}

func (c *metered) Close() error {
	c.once.Do(func() { c.m.count(-1) })
	return c.Conn.Close()
}

func TestF67ThreeHundredServicesOverHTTP(t *testing.T) {
	t.Parallel()
	m := &meter{}
	r := startRig(t, testbed.ConsulOptions{}, Options{SweepEvery: 2 * time.Second, Wait: 5 * time.Second, Dial: m.dial})
	r.fill("web", 300)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	if want := "144 of 300 services followed live, the rest within 2s"; v.Status.Message != want {
		t.Errorf("the status says %q, want %q", v.Status.Message, want)
	}
	for _, name := range []string{"web-299", "web-000", "web-150"} {
		r.register(name, name, "10.9.9.9", 8080, withTags("version|v2"))
		recorder.Wait(t, name, r.has(name, "version", "v2"))
	}
	before := r.asked(CountHealth)
	until(t, "more rounds", func() bool { return r.asked(CountHealth) > before+900 })
	if most, all := m.seen(); most > 150 || all > 160 {
		t.Errorf("%d connections at once, %d in all; want at most 150 that are kept", most, all)
	}
	r.deregister("web-299")
	recorder.Wait(t, "a swept service to go", func(v registrytest.View) bool { return v.Services[r.Key("web-299")] == nil })
}

func TestTLSAndHTTP2ShareConnections(t *testing.T) {
	t.Parallel()
	m, f := &meter{}, &tokenFile{}
	r := startRig(t, testbed.ConsulOptions{ACL: true, TLS: true}, Options{Token: f.read, Dial: m.dial})
	_, token, _ := r.newPolicy(t, "hub", readAllRules)
	f.write(token)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.CA)
	r.options.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	r.fill("web", 300)
	recorder, stop := registrytest.Start(t, r)
	if v := recorder.WaitPhase(t, federation.Ready); v.Status.Message != "" || len(v.Services) != 300 {
		t.Errorf("%d services, status %q; want 300 that are all followed live", len(v.Services), v.Status.Message)
	}
	r.register("web-299", "web-299", "10.9.9.9", 8080, withTags("version|v2"))
	recorder.Wait(t, "a change", r.has("web-299", "version", "v2"))
	if most, _ := m.seen(); most > 4 {
		t.Errorf("%d connections for 300 long polls over HTTP/2", most)
	}
	stop()
	r.options.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	strange, _ := registrytest.Start(t, r)
	if v := staleBy(t, strange, "certificate"); v.Edits != 0 {
		t.Errorf("a server of another authority: %q, %d edits", v.Status.Message, v.Edits)
	}
}

func TestConsulWithFewerConnections(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{Config: map[string]any{"limits": map[string]any{"http_max_conns_per_client": 30}}},
		Options{SweepEvery: 2 * time.Second})
	r.fill("web", 60)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.Wait(t, "fewer long polls", func(v registrytest.View) bool {
		return v.Status.Phase == federation.Ready && strings.Contains(v.Status.Message, "429")
	})
	if len(v.Services) != 60 {
		t.Errorf("%d services, want 60", len(v.Services))
	}
	for _, name := range []string{"web-000", "web-059"} {
		r.register(name, name, "10.9.9.9", 8080, withTags("version|v2"))
		recorder.Wait(t, name, r.has(name, "version", "v2"))
	}
	for _, s := range recorder.Statuses() {
		if (s.Phase == federation.Stale || s.Phase == federation.Failed) && !isUnanswered(s) {
			t.Errorf("too many connections brought %s: %s", s.Phase, s.Message)
		}
	}
}

func TestPanicReachesWhoRunsTheRegistry(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.fill("web", 2)
	var armed atomic.Bool
	r.options.Count = func(string) {
		if armed.Load() {
			panic("a bug")
		}
	}
	recorder, caughtPanic := &registrytest.Recorder{}, make(chan *panicked, 1)
	limit := time.NewTimer(registrytest.Patience)
	defer limit.Stop()
	go func() {
		caughtPanic <- caught(func() { _ = r.Run(t.Context(), recorder) })
	}()
	recorder.WaitPhase(t, federation.Ready)
	armed.Store(true)
	select {
	case p := <-caughtPanic:
		if p == nil || !strings.Contains(p.Error(), "a bug") {
			t.Errorf("Run ended with %v, want the panic", p)
		}
	case <-limit.C:
		t.Fatal("a panic of a poller was lost")
	}
}

// TestR84ANarrowedTokenShowsAtTheNextProof: long polls that wait for ten minutes do
// not tell, and neither does the token itself.
func TestR84ANarrowedTokenShowsAtTheNextProof(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]string{"services": noWebRules, "nodes": noNodeRules} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f, _, _ := startTokenRig(t, "hub", 10*time.Minute)
			_, narrow, _ := r.newPolicy(t, "narrow", rules)
			r.fill("web", 1)
			recorder, _ := registrytest.Start(t, r)
			recorder.WaitPhase(t, federation.Ready)
			recorder.Always(never(r, "web-000"))
			f.write(narrow)
			staleBy(t, recorder, "tokenFile")
		})
	}
}
