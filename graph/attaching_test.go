package graph_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// attaching attaches clusters to an Aggregate without looking at them.
type attaching struct{ to *federation.Writer }

func (a attaching) Attach(_ context.Context, in model.AttachClusterInput, _ string) ([]apply.Finding, []apply.Error, error) {
	id := federation.ClusterID(in.ClusterID)
	if id == "hub" {
		refused := apply.Error{Code: "DUPLICATE_CLUSTER_ID", Field: "clusterID", Message: "it is the hub's own ID"}
		return []apply.Finding{{Code: string(refused.Code), Severity: apply.Refusal, Message: refused.Message, Field: refused.Field}},
			[]apply.Error{refused}, nil
	}
	if in.DryRun != nil && *in.DryRun {
		return []apply.Finding{
			{Code: "REACHABILITY", Severity: apply.Info, Message: "it answers"},
			{Code: "CLOCK", Severity: apply.Warning, Message: "the clocks are 2m0s apart"},
		}, nil, nil
	}
	spec := federation.ClusterSpec{Provider: federation.Kubernetes}
	if in.Consul != nil {
		spec.Provider = federation.Consul
	}
	if in.NetworkID != nil {
		spec.Network = federation.NetworkID(*in.NetworkID)
	}
	a.to.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
		federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{id: spec}}})
	return nil, nil, nil
}

func (a attaching) Rotate(context.Context, model.RotateClusterInput, string) ([]apply.Finding, []apply.Error, error) {
	return []apply.Finding{{Code: "CREDENTIALS_EXPIRY", Severity: apply.Warning, Message: "the credentials end soon"}}, nil, nil
}

func (a attaching) Confirm(context.Context, federation.ClusterID) ([]apply.Error, error) {
	return []apply.Error{{Code: "NOTHING_HELD", Field: "clusterID", Message: "nothing of it waits for a confirmation"}}, nil
}

func (a attaching) Detach(_ context.Context, id federation.ClusterID, _ string) ([]apply.Error, error) {
	a.to.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Gone: []federation.ClusterID{id}}})
	return nil, nil
}

// TestContractOfClustersIsAnswered sends the operations that attach and detach, as
// one story.
func TestContractOfClustersIsAnswered(t *testing.T) {
	texts := contract(t)
	c := newConfigured(t, func(o *graph.Options) {
		mesh := o.Snapshots.(*federation.Aggregate)
		o.Clusters = attaching{mesh.Open(federation.ShardKey{Provider: federation.Operator})}
		o.Now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	})
	kubernetes := map[string]any{"kubeconfig": "apiVersion: v1", "context": "c1"}
	consul := map[string]any{"address": "https://consul.example:8501", "token": "t", "datacenter": "dc1", "tls": map[string]any{"ca": "PEM"}}
	for i, step := range []struct {
		operation string
		input     map[string]any
	}{
		{"AttachCluster", map[string]any{"clusterID": "east", "kubernetes": kubernetes, "dryRun": true}},
		{"AttachCluster", map[string]any{"clusterID": "hub", "kubernetes": kubernetes}},
		{"AttachCluster", map[string]any{"clusterID": "east", "networkID": "n7", "precedence": 5, "kubernetes": kubernetes}},
		{"AttachCluster", map[string]any{"clusterID": "dc1", "consul": consul}},
		{"RotateCluster", map[string]any{"clusterID": "east", "kubernetes": kubernetes, "dryRun": false}},
		{"ConfirmCluster", map[string]any{"clusterID": "east"}},
		{"DetachCluster", map[string]any{"clusterID": "east"}},
	} {
		data, errs := c.send(texts[step.operation], input(step.input))
		if len(errs) > 0 {
			t.Fatal(step.operation, string(errs))
		}
		compare(t, filepath.Join("testdata", "contract", fmt.Sprintf("clusters-%d-%s.json", i+1, step.operation)),
			indented(t, withoutOpaque(data)))
	}
}
