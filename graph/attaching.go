package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Clusters attaches and detaches clusters. An error of its methods is that the hub
// could not answer; what is wrong with a request is in what they return.
type Clusters interface {
	Attach(ctx context.Context, in model.AttachClusterInput, author string) ([]apply.Finding, []apply.Error, error)
	Rotate(ctx context.Context, in model.RotateClusterInput, author string) ([]apply.Finding, []apply.Error, error)
	Confirm(ctx context.Context, id federation.ClusterID) ([]apply.Error, error)
	Detach(ctx context.Context, id federation.ClusterID, author string) ([]apply.Error, error)
}

type noClusters struct{}

var errNoClusters = transport.Errorf(transport.Unavailable, "this hub attaches no clusters by requests")

func (noClusters) Attach(context.Context, model.AttachClusterInput, string) ([]apply.Finding, []apply.Error, error) {
	return nil, nil, errNoClusters
}

func (noClusters) Rotate(context.Context, model.RotateClusterInput, string) ([]apply.Finding, []apply.Error, error) {
	return nil, nil, errNoClusters
}

func (noClusters) Confirm(context.Context, federation.ClusterID) ([]apply.Error, error) {
	return nil, errNoClusters
}

func (noClusters) Detach(context.Context, federation.ClusterID, string) ([]apply.Error, error) {
	return nil, errNoClusters
}

// AttachCluster attaches a cluster.
func (m mutation) AttachCluster(ctx context.Context, in model.AttachClusterInput) (model.AttachClusterPayload, error) {
	findings, errs, err := m.Clusters.Attach(ctx, in, m.author(ctx))
	payload := model.AttachClusterPayload{Findings: model.Findings(findings), UserErrors: model.UserErrors(errs)}
	if len(errs) == 0 && !value(in.DryRun) {
		payload.Cluster = m.shownAs(in.ClusterID)
	}
	return payload, shown(err)
}

// RotateCluster gives a cluster other credentials.
func (m mutation) RotateCluster(ctx context.Context, in model.RotateClusterInput) (model.RotateClusterPayload, error) {
	findings, errs, err := m.Clusters.Rotate(ctx, in, m.author(ctx))
	return model.RotateClusterPayload{
		Cluster: m.shownAs(in.ClusterID), Findings: model.Findings(findings),
		UserErrors: model.UserErrors(errs),
	}, shown(err)
}

// ConfirmCluster accepts the change that a cluster is held for.
func (m mutation) ConfirmCluster(ctx context.Context, in model.ConfirmClusterInput) (model.ConfirmClusterPayload, error) {
	errs, err := m.Clusters.Confirm(ctx, federation.ClusterID(in.ClusterID))
	return model.ConfirmClusterPayload{Cluster: m.shownAs(in.ClusterID), UserErrors: model.UserErrors(errs)}, shown(err)
}

// DetachCluster detaches a cluster.
func (m mutation) DetachCluster(ctx context.Context, in model.DetachClusterInput) (model.DetachClusterPayload, error) {
	errs, err := m.Clusters.Detach(ctx, federation.ClusterID(in.ClusterID), m.author(ctx))
	payload := model.DetachClusterPayload{UserErrors: model.UserErrors(errs)}
	if len(errs) == 0 && err == nil {
		payload.ClusterID, payload.Cluster = &in.ClusterID, m.shownAs(in.ClusterID)
	}
	return payload, shown(err)
}

// shownAs is the cluster as the snapshot after the mutation shows it, or nil.
func (m mutation) shownAs(id string) *model.Cluster {
	return clusterNamed(m.resolver, m.Snapshots.Latest(), federation.ClusterID(id))
}
