package client

import "context"

// ClusterOutcome is the result of a change of a cluster. With UserErrors nothing
// was changed.
type ClusterOutcome struct {
	Cluster    *ClusterSummary // nil: none is shown
	Findings   []Finding
	UserErrors []UserError
}

// AttachCluster attaches a cluster.
func (c *Client) AttachCluster(ctx context.Context, input AttachClusterInput) (ClusterOutcome, error) {
	answer, err := AttachCluster(ctx, c, input)
	if err != nil {
		return ClusterOutcome{}, err
	}
	return ClusterOutcome(answer.AttachCluster), nil
}

// RotateCluster gives a cluster other credentials.
func (c *Client) RotateCluster(ctx context.Context, input RotateClusterInput) (ClusterOutcome, error) {
	answer, err := RotateCluster(ctx, c, input)
	if err != nil {
		return ClusterOutcome{}, err
	}
	return ClusterOutcome(answer.RotateCluster), nil
}

// ConfirmCluster accepts the change that a cluster is held for.
func (c *Client) ConfirmCluster(ctx context.Context, id string) (ClusterOutcome, error) {
	answer, err := ConfirmCluster(ctx, c, ConfirmClusterInput{ClusterID: id})
	if err != nil {
		return ClusterOutcome{}, err
	}
	return ClusterOutcome{Cluster: answer.ConfirmCluster.Cluster, UserErrors: answer.ConfirmCluster.UserErrors}, nil
}

// DetachCluster detaches a cluster.
func (c *Client) DetachCluster(ctx context.Context, id string) (ClusterOutcome, error) {
	answer, err := DetachCluster(ctx, c, DetachClusterInput{ClusterID: id})
	if err != nil {
		return ClusterOutcome{}, err
	}
	return ClusterOutcome{UserErrors: answer.DetachCluster.UserErrors}, nil
}
