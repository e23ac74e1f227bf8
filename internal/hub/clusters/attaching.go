package clusters

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/metrics"
)

// Attaching is what GraphQL attaches clusters with.
type Attaching struct {
	clusters *attach.Clusters
	counts   *metrics.Clusters
}

// Attach is part of graph.Clusters.
func (a Attaching) Attach(ctx context.Context, in model.AttachClusterInput, author string) ([]apply.Finding, []apply.Error, error) {
	r := attach.Request{
		ID: federation.ClusterID(in.ClusterID), Network: federation.NetworkID(deref(in.NetworkID)), Precedence: in.Precedence, Aliases: in.Aliases,
		Kubernetes: kubernetesOf(in.Kubernetes), Consul: consulOf(in.Consul), DryRun: deref(in.DryRun), Author: author,
	}
	result, err := a.clusters.Attach(ctx, r)
	a.count("attach", r.DryRun, result.Errors, err)
	return result.Findings, result.Errors, err
}

// Rotate is part of graph.Clusters.
func (a Attaching) Rotate(ctx context.Context, in model.RotateClusterInput, author string) ([]apply.Finding, []apply.Error, error) {
	r := attach.Request{
		ID: federation.ClusterID(in.ClusterID), Kubernetes: kubernetesOf(in.Kubernetes), Consul: consulOf(in.Consul), DryRun: deref(in.DryRun), Author: author,
	}
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

func kubernetesOf(in *model.KubernetesAccessInput) *attach.Kubernetes {
	if in == nil {
		return nil
	}
	return &attach.Kubernetes{Kubeconfig: kube.NewSecret(in.Kubeconfig), Context: deref(in.Context)}
}

func consulOf(in *model.ConsulAccessInput) *attach.Consul {
	if in == nil {
		return nil
	}
	c := &attach.Consul{Address: in.Address, Datacenter: deref(in.Datacenter), Token: kube.NewSecret(deref(in.Token))}
	if in.TLS != nil {
		c.CA, c.Cert, c.Key = deref(in.TLS.Ca), deref(in.TLS.Cert), kube.NewSecret(deref(in.TLS.Key))
	}
	return c
}

// deref is the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
