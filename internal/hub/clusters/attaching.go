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
	r := requestOf(in.ClusterID, in.Kubernetes, in.Consul)
	r.Network, r.Precedence, r.Aliases = federation.NetworkID(deref(in.NetworkID)), in.Precedence, in.Aliases
	r.DryRun, r.Author = deref(in.DryRun), author
	if r.Section["context"] == "" {
		r.Section = nil
	}
	result, err := a.clusters.Attach(ctx, r)
	a.count("attach", r.DryRun, result.Errors, err)
	return result.Findings, result.Errors, err
}

// Rotate is part of graph.Clusters. It names the context of a kubeconfig also where it has
// none: the one before is another kubeconfig's.
func (a Attaching) Rotate(ctx context.Context, in model.RotateClusterInput, author string) ([]apply.Finding, []apply.Error, error) {
	r := requestOf(in.ClusterID, in.Kubernetes, in.Consul)
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

// requestOf translates the inputs of kinds: one of them, or the request has no provider.
func requestOf(id string, k *model.KubernetesAccessInput, c *model.ConsulAccessInput) attach.Request {
	r := attach.Request{ID: federation.ClusterID(id)}
	switch {
	case k != nil && c == nil:
		r.Provider, r.Section = federation.Kubernetes, map[string]any{"context": deref(k.Context)}
		r.Credentials.Values = map[string]kube.Secret{"kubeconfig": kube.NewSecret(k.Kubeconfig)}
	case c != nil && k == nil:
		r.Provider, r.Section = federation.Consul, map[string]any{"address": c.Address}
		if c.Datacenter != nil && *c.Datacenter != "" {
			r.Section["datacenter"] = *c.Datacenter
		}
		r.Credentials.Values = map[string]kube.Secret{"token": kube.NewSecret(deref(c.Token))}
		if c.TLS != nil {
			for name, value := range map[string]*string{"ca": c.TLS.Ca, "cert": c.TLS.Cert, "key": c.TLS.Key} {
				r.Credentials.Values[name] = kube.NewSecret(deref(value))
			}
		}
	}
	return r
}

// deref is the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
