package clusters

import (
	"context"
	"encoding/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/metrics"
)

// Attaching is what GraphQL attaches clusters with.
type Attaching struct {
	clusters *attach.Clusters
	kinds    attach.Kinds
	counts   *metrics.Clusters
}

// Attach is part of graph.Clusters.
func (a Attaching) Attach(ctx context.Context, in model.AttachClusterInput, author string) ([]apply.Finding, []apply.Error, error) {
	r, err := a.request(in.ClusterID, in)
	if err != nil {
		return nil, nil, err
	}
	r.Network, r.Precedence, r.Aliases = federation.NetworkID(deref(in.NetworkID)), in.Precedence, in.Aliases
	r.DryRun, r.Author = deref(in.DryRun), author
	result, err := a.clusters.Attach(ctx, r)
	a.count("attach", r.DryRun, result.Errors, err)
	return result.Findings, result.Errors, err
}

// Rotate is part of graph.Clusters.
func (a Attaching) Rotate(ctx context.Context, in model.RotateClusterInput, author string) ([]apply.Finding, []apply.Error, error) {
	r, err := a.request(in.ClusterID, in)
	if err != nil {
		return nil, nil, err
	}
	r.DryRun, r.Author = deref(in.DryRun), author
	result, err := a.clusters.Rotate(ctx, r)
	a.count("rotate", r.DryRun, result.Errors, err)
	return result.Findings, result.Errors, err
}

// Confirm is part of graph.Clusters.
func (a Attaching) Confirm(ctx context.Context, id federation.ClusterID) ([]apply.Error, error) {
	result, err := a.clusters.Confirm(ctx, id)
	a.count("confirm", false, result.Errors, err)
	return result.Errors, err
}

// Detach is part of graph.Clusters.
func (a Attaching) Detach(ctx context.Context, id federation.ClusterID, author string) ([]apply.Error, error) {
	result, err := a.clusters.Detach(ctx, id, author)
	a.count("detach", false, result.Errors, err)
	return result.Errors, err
}

func (a Attaching) count(action string, dryRun bool, refused []apply.Error, err error) {
	switch {
	case dryRun:
	case err != nil:
		a.counts.Change(action, "failed")
	case len(refused) > 0:
		a.counts.Change(action, "refused")
	default:
		a.counts.Change(action, "done")
	}
}

// request is what the sections of an input ask for; each kind reads its own.
func (a Attaching) request(id string, input any) (attach.Request, error) {
	data, err := json.Marshal(input)
	if err != nil {
		return attach.Request{}, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return attach.Request{}, err
	}
	return a.kinds.Request(federation.ClusterID(id), fields), nil
}

// deref is the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
