package crd_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/schema"
)

// anything admits what the suite makes up, without what a server writes.
type anything struct{}

func (anything) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	metadata := wanted["metadata"].(map[string]any)
	return schema.Admitted{Object: map[string]any{
		"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "spec": wanted["spec"],
		"metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
	}}, nil
}

// written is a source, and the API server that it reads.
type written struct {
	*crd.Source
	t        *testing.T
	server   *testbed.Kube
	revision atomic.Int64
}

// Run is part of config.Source.
func (w *written) Run(ctx context.Context, to config.Sink) error {
	return w.Source.Run(ctx, configtest.Noting(to, &w.revision))
}

const entries = "/apis/networking.istio.io/v1/namespaces/shop/workloadentries"

// Commit is part of configtest.Written.
func (w *written) Commit(_ context.Context, c config.Commit) (int64, error) {
	revision := w.revision.Load() + 1
	for _, change := range c.Changes {
		if change.Object == nil {
			do(w.t, w.server, http.MethodDelete, entries+"/"+change.Key.Name, "")
			continue
		}
		w.server.Apply(string(change.Object.Manifest))
	}
	return revision, nil
}

// TestG01Conformance: the source passes the suite of those that are watched.
func TestG01Conformance(t *testing.T) {
	t.Parallel()
	server := testbed.StartKube(t, testbed.KubeOptions{})
	loose := definition(t, "istio", "workloadentries.networking.istio.io")
	loose["spec"].(map[string]any)["versions"] = []any{map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
	}}
	install(t, server, loose)
	server.Apply(namespace("shop"))
	configtest.RunWatched(t, func(t *testing.T) configtest.Written {
		testbed.WaitFor(t, 5*time.Minute, "an empty namespace", func() error { // the kind may not be served yet
			if answer := server.Do(http.MethodDelete, entries, nil); answer.Err != nil || answer.Status != http.StatusOK {
				return fmt.Errorf("it answers %d, %w", answer.Status, answer.Err)
			}
			return nil
		})
		r := newRig(t, func(o *crd.Options) { o.Schema = anything{} })
		r.read(all("c1", "shop"))
		r.attach("c1", server.Admin, 0)
		return &written{Source: r.source, t: t, server: server}
	})
}
