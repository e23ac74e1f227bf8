package client

import "context"

// Outcome is what became of a change of the configuration. With UserErrors
// nothing was changed.
type Outcome Applied

// Apply merges manifests into the configuration.
func (c *Client) Apply(ctx context.Context, input ApplyInput) (Outcome, error) {
	answer, err := Apply(ctx, c, input)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Apply), nil
}

// Delete deletes objects.
func (c *Client) Delete(ctx context.Context, input DeleteInput) (Outcome, error) {
	answer, err := Delete(ctx, c, input)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Delete), nil
}

// Rollback goes back to a revision.
func (c *Client) Rollback(ctx context.Context, input RollbackInput) (Outcome, error) {
	answer, err := Rollback(ctx, c, input)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Rollback), nil
}
