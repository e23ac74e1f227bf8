package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// between stands between a command and its hub: it notes what is asked, and can cut the
// connection.
type between struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string               // names of operations
	afters []string               // cursors behind which changes were asked for
	cut    bool                   // new connections end at once
	after  func(of string) string // changes a cursor; nil: it stays
}

func newBetween(t *testing.T, h *hubUnderTest) *between {
	t.Helper()
	b := &between{}
	to := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.dir, "graphql"))
		}},
		FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.note(r); err != nil {
			panic(http.ErrAbortHandler)
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { b.CloseClientConnections(); b.Close() })
	return b
}

// note notes a request, with an error where the connection is cut.
func (b *between) note(r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut {
		return io.ErrClosedPipe
	}
	b.asked = append(b.asked, fmt.Sprint(body["operationName"]))
	variables, _ := body["variables"].(map[string]any)
	if after, is := variables["after"].(string); is {
		b.afters = append(b.afters, after)
		if b.after != nil {
			variables["after"] = b.after(after)
		}
		text, err = json.Marshal(body)
		if err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return nil
}

func (b *between) setCut(cut bool) {
	b.mu.Lock()
	b.cut = cut
	b.mu.Unlock()
	if cut {
		b.CloseClientConnections()
	}
}

// operations are the operations that were asked for, each with how often.
func (b *between) operations() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]int{}
	for _, name := range b.asked {
		counts[name]++
	}
	return counts
}

// awaitSubscription waits until the changes were asked for.
func (b *between) awaitSubscription(t *testing.T, h *hubUnderTest) {
	t.Helper()
	h.await(t, "the subscription", func() error {
		if n := b.operations()["Changes"]; n != 1 {
			return fmt.Errorf("it was asked for %d times", n)
		}
		return nil
	})
}

func (b *between) cursors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.afters
}

const newNetwork = "apiVersion: isthmus.dev/v1\nkind: Network\nmetadata: {name: n9}\nspec: {gateways: [{address: 192.0.2.9}]}\n"

// A watch reads its list once. After that, one subscription tells it everything that
// it shows, for each resource type: changes, status, counts and deletions.
func TestR44WatchAsksForChangesAlone(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	dir := t.TempDir()
	rule := write(t, filepath.Join(dir, "rule.yaml"), strings.Replace(strings.Replace(fmt.Sprintf(manifest1, "hello"),
		"host: web", "host: hello.default.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}", 1),
		"namespace: shop", "namespace: default", 1))
	network := write(t, filepath.Join(dir, "network.yaml"), newNetwork)
	entry := write(t, filepath.Join(dir, "ext.yaml"), externalShop)
	for _, c := range []struct {
		line  string
		list  string
		steps func()
	}{
		{"get dr -n default -w", "Objects", func() {
			s.do("web-1 connects")
			mustRun(t, "apply", "-f", rule)
			s.do("web-1 receives")
			s.do("shows pending 1/1")
			s.do("web-1 accepts")
			s.do("shows acked 1/1")
			mustRun(t, "delete", "dr/hello", "-n", "default")
			s.do("shows gone")
		}},
		{"get networks -w", "Networks", func() {
			mustRun(t, "apply", "-f", network)
			s.do("shows 192.0.2.9:15443")
			mustRun(t, "delete", "networks.isthmus.dev/n9")
			s.do("shows gone")
		}},
		{"get clusters -w -o jsonpath={.clusterID}={.services.totalCount};", "Clusters", func() {
			mustRun(t, "apply", "-f", entry)
			s.do("shows hub=1;")
		}},
		{"get services -A -w", "Services", func() {
			mustRun(t, "delete", "-f", entry)
			s.do("shows gone")
		}},
		{"get proxies -w -o name", "Proxies", func() {
			s.do("web-2 connects")
			s.do("shows " + nodeOf("web-2"))
			s.do("web-2 leaves")
			s.do("shows " + nodeOf("web-2") + " is gone")
		}},
	} {
		b := newBetween(t, s.hub)
		s.begin(c.line + " --server " + b.URL)
		b.awaitSubscription(t, s.hub)
		c.steps()
		if o := s.end(); o.code != cmdutil.ExitDone {
			t.Errorf("%s: exit %d with %q", c.line, o.code, o.errors.String())
		}
		if got, want := fmt.Sprint(b.operations()), fmt.Sprint(map[string]int{"Kinds": 1, c.list: 1, "Changes": 1}); got != want {
			t.Errorf("%s asked the hub for %s, want %s", c.line, got, want)
		}
	}
}

// A watch whose connection is lost tells what happened meanwhile, once: behind its
// cursor, or out of the whole state where the hub does not know the cursor any more.
func TestR44WatchGoesOnWhereItWasCut(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	for name, after := range map[string]func(string) string{"its cursor": nil, "an unknown cursor": func(string) string { return "gone" }} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			dir := t.TempDir()
			mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(manifest1, "one")))
			b := newBetween(t, s.hub)
			b.after = after
			s.begin("get dr -n shop -w -o json --server " + b.URL)
			b.awaitSubscription(t, s.hub) // what comes now comes with a cursor
			mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "two.yaml"), fmt.Sprintf(manifest1, "two")))
			s.do(`shows "name":"two"`)
			b.setCut(true)
			s.do("shows trying again")
			mustRun(t, "delete", "dr/one", "-n", "shop")
			mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "three.yaml"), fmt.Sprintf(manifest1, "three")))
			b.setCut(false)
			s.do(`shows "type":"DELETED"`)
			s.do(`shows "name":"three"`)
			o := s.end()
			if n := strings.Count(o.out.String(), "\n"); o.code != cmdutil.ExitDone || n != 4 || strings.Contains(o.out.String(), "MODIFIED") {
				t.Errorf("exit %d, %d lines: %s", o.code, n, o.out.String())
			}
			if cursors := b.cursors(); len(cursors) == 0 || cursors[len(cursors)-1] == "" {
				t.Errorf("it asked for the changes behind %q", cursors)
			}
			mustRun(t, "delete", "dr/two", "dr/three", "-n", "shop")
		})
	}
}
