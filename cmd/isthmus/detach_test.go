package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/xds/xdstest"
)

// connected is a proxy without an Envoy: it holds what it was sent, across streams.
type connected struct {
	mu       sync.Mutex
	versions map[string]map[string]string // by type and name
	content  map[string]string            // by type and name
}

func newConnected() *connected {
	return &connected{versions: map[string]map[string]string{xdstest.CDS: {}, xdstest.EDS: {}}, content: map[string]string{}}
}

// follow connects to the hub and takes what comes until the stream or the context
// ends.
func (p *connected) follow(ctx context.Context, h *hubUnderTest) error {
	client, end, err := h.connectSidecar(ctx)
	if err != nil {
		return err
	}
	defer end()
	p.mu.Lock()
	known := map[string]map[string]string{xdstest.CDS: maps.Clone(p.versions[xdstest.CDS]), xdstest.EDS: maps.Clone(p.versions[xdstest.EDS])}
	p.mu.Unlock()
	if err := client.Send(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}, Initial: known[xdstest.CDS]}); err != nil {
		return err
	}
	asked := map[string]bool{}
	for {
		r, err := client.Receive(ctx)
		if err != nil {
			return err
		}
		if err := client.Ack(r); err != nil {
			return err
		}
		fresh := p.take(r, asked)
		if len(fresh) == 0 {
			continue
		}
		initial := map[string]string{}
		for _, name := range fresh {
			if v := known[xdstest.EDS][name]; v != "" {
				initial[name] = v
			}
		}
		if err := client.Send(xdstest.Request{Type: xdstest.EDS, Names: fresh, Initial: initial}); err != nil {
			return err
		}
	}
}

// take keeps what came, and returns the clusters whose endpoints are to be asked
// for. Endpoints of a cluster that went are dropped, as Envoy does.
func (p *connected) take(r xdstest.Response, asked map[string]bool) (fresh []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, res := range r.Resources {
		p.versions[r.Type][name] = r.Versions[name]
		p.content[r.Type+" "+name] = string(res.GetValue())
		if r.Type == xdstest.CDS && strings.HasPrefix(name, "outbound|") && !asked[name] {
			asked[name] = true
			fresh = append(fresh, name)
		}
	}
	for _, name := range r.Removed {
		delete(p.versions[r.Type], name)
		delete(p.content, r.Type+" "+name)
		if r.Type == xdstest.CDS {
			delete(asked, name)
			delete(p.versions[xdstest.EDS], name)
			delete(p.content, xdstest.EDS+" "+name)
		}
	}
	return fresh
}

// holds are the resources in which the text is.
func (p *connected) holds(text string) (where []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, content := range p.content {
		if strings.Contains(name+content, text) {
			where = append(where, name)
		}
	}
	return where
}

// webHost and webAddress are what attachedService has.
const (
	webHost    = "web.shop.svc.cluster.local"
	webAddress = "10.66.0.1"
)

// TestDetachLeavesNothing: within 5 s nothing of the cluster is in the snapshot, in
// what a connected proxy was sent, on disk and among the credentials; the same
// holds 5 s after the restart of a hub that died in between, for a proxy that
// comes back with what it had.
func TestDetachLeavesNothing(t *testing.T) {
	c := newCrashing(t)
	if _, err := c.p.at().applyEntry("stays", 1); err != nil { // an empty mesh would need a second proof
		t.Fatal(err)
	}
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			c.t = t
			c.attach()
			ctx, stop := context.WithCancel(t.Context())
			proxy, done := newConnected(), make(chan struct{})
			go func() {
				defer close(done)
				again := time.NewTicker(20 * time.Millisecond)
				defer again.Stop()
				for ctx.Err() == nil {
					_ = proxy.follow(ctx, &hubUnderTest{dir: c.dir}) // it comes again
					<-again.C
				}
			}()
			defer func() { stop(); <-done }()
			c.p.at().await(t, "the proxy to have the endpoint", func() error {
				if len(proxy.holds(webAddress)) == 0 {
					return errors.New("it has none")
				}
				return nil
			})
			began := time.Now()
			if crash {
				stopped := c.whenStored(c.p)
				defer stopped()
				_, _ = c.p.at().tell("detachCluster", map[string]any{"clusterID": "east"})
				<-c.p.done
				c.start()
				began = c.p.up
			} else {
				c.detach()
			}
			c.wantNothing(began)
			c.p.at().await(t, "the proxy to have nothing of it", func() error {
				if where := append(proxy.holds(webAddress), proxy.holds(webHost)...); len(where) > 0 {
					return fmt.Errorf("it has %q", where)
				}
				return nil
			})
			if took := c.clock.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestF02KilledBetweenCommitAndAnswer: a repetition with the same key gives the one
// object that there is, and its revision.
func TestF02KilledBetweenCommitAndAnswer(t *testing.T) {
	c := newCrashing(t)
	c.link.Delay(300 * time.Millisecond) // so that the hub learns later than the test that its commit is stored
	p := c.p
	stop := c.whenStoredUnder(p, "/isthmus/v1/config/head")
	if answer, err := p.at().applyEntry("entry", 1); err == nil {
		t.Fatalf("the apply was answered before the hub died: %+v", answer)
	}
	<-p.done
	stop()
	c.link.Pass()
	c.start()
	first, err := c.p.at().applyEntry("entry", 1)
	if err != nil || len(first.Apply.UserErrors) > 0 {
		t.Fatalf("the repetition: %+v, %v", first, err)
	}
	again, err := c.p.at().applyEntry("entry", 1)
	if err != nil || again.Apply.Revision != first.Apply.Revision {
		t.Errorf("repeated once more: %+v, %v; want revision %s", again, err, first.Apply.Revision)
	}
	var answer struct{ History struct{ TotalCount int } }
	if err := c.p.at().query(`{history {totalCount}}`, &answer); err != nil || answer.History.TotalCount != 1 {
		t.Errorf("the history has %d revisions, %v", answer.History.TotalCount, err)
	}
	if names, err := c.p.at().names(); err != nil || len(names) != 1 {
		t.Errorf("there are the objects %v, %v", names, err)
	}
}
