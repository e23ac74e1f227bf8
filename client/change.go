package client

import "context"

// Outcome is the result of a change of the configuration. With UserErrors
// nothing was changed.
type Outcome Applied

// Apply merges manifests into the configuration. Without diff, the changes of the
// outcome come without theirs, which are most of the hub's answer.
func (c *Client) Apply(ctx context.Context, input ApplyInput, diff bool) (Outcome, error) {
	answer, err := Apply(ctx, c, input, diff)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Apply), nil
}

// Delete deletes objects; diff as in Apply.
func (c *Client) Delete(ctx context.Context, input DeleteInput, diff bool) (Outcome, error) {
	answer, err := Delete(ctx, c, input, diff)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Delete), nil
}

// Rollback goes back to a revision; diff as in Apply.
func (c *Client) Rollback(ctx context.Context, input RollbackInput, diff bool) (Outcome, error) {
	answer, err := Rollback(ctx, c, input, diff)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome(answer.Rollback), nil
}
