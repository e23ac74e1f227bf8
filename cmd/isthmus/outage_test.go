package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

func (h *hubUnderTest) applyEntry(name string, n int) (applyAnswer, error) {
	var answer applyAnswer
	err := h.query(fmt.Sprintf(`mutation {apply(input: {manifests: [%q], idempotencyKey: "%s-%d"}) {revision userErrors {code message}}}`,
		fmt.Sprintf(entryManifest, name, n), name, n), &answer)
	return answer, err
}

// firstClusters is what a proxy gets that comes now.
func (h *hubUnderTest) firstClusters(t *testing.T) (xdstest.Response, error) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(h.dir, "xds"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return xdstest.Response{}, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := xdstest.Open(ctx, conn, xdstest.Options{
		Delta: true,
		Node:  &corev3.Node{Id: "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local"},
	})
	if err != nil {
		return xdstest.Response{}, err
	}
	defer client.Close()
	if err := client.Send(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}}); err != nil {
		return xdstest.Response{}, err
	}
	return client.Receive(ctx)
}

// wantUnavailable applies something that the store cannot take.
func (h *hubUnderTest) wantUnavailable(t *testing.T, name string) {
	t.Helper()
	testbed.Within(t, 5*time.Second, func() time.Duration {
		began := time.Now()
		refused, err := h.applyEntry(name, 1)
		if err != nil || len(refused.Apply.UserErrors) != 1 || refused.Apply.UserErrors[0].Code != "UNAVAILABLE" ||
			!strings.Contains(refused.Apply.UserErrors[0].Message, "repeat") {
			t.Errorf("a change without a store is answered %+v, %v", refused, err)
		}
		return time.Since(began)
	})
}

func TestF13HubOutlivesItsEtcd(t *testing.T) {
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	h := startHub(t, "--etcd-endpoints", store.URL)
	if made, err := h.applyEntry("before", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	for name, outage := range map[string]struct{ begin, end func() }{
		"hangs": {store.Pause, store.Resume},
		"gone":  {store.Kill, store.Restart},
	} {
		t.Run(name, func(t *testing.T) {
			outage.begin()
			h.wantUnavailable(t, name)
			h.awaitSource(t, "ETCD", func(s shownSource) bool {
				return len(s.Problems) == 1 && s.Problems[0].Code == "UNREACHABLE" && strings.Contains(s.Problems[0].Message, "since 20") &&
					s.Age != nil && s.Revision != nil
			})
			var answer struct {
				ConfigObjects struct{ Nodes []struct{ Name string } }
			}
			if err := h.query(`{configObjects(first: 5, filter: {name: "before"}) {nodes {name}}}`, &answer); err != nil ||
				len(answer.ConfigObjects.Nodes) != 1 {
				t.Errorf("reading without a store gives %+v, %v", answer, err)
			}
			if clusters, err := h.firstClusters(t); err != nil || !strings.Contains(fmt.Sprint(clusters), "before.example.com") {
				t.Errorf("a proxy that comes without a store gets %.300v, %v", clusters, err)
			}
			if status, body, err := h.get("/readyz"); err != nil || status != 200 {
				t.Errorf("the hub answers %d %s, %v", status, body, err)
			}
			outage.end()
			h.awaitSource(t, "ETCD", func(s shownSource) bool { return len(s.Problems) == 0 })
			h.await(t, "a change to be taken", func() error {
				made, err := h.applyEntry(name, 1)
				if err == nil && len(made.Apply.UserErrors) > 0 {
					err = fmt.Errorf("%+v", made)
				}
				return err
			})
		})
	}
}
