package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// drainStatus is what the Drain does in the operation's snapshot; nil for other kinds.
func drainStatus(ctx context.Context, key federation.ObjectKey) *model.DrainStatus {
	if key.Of() != federation.DrainKind {
		return nil
	}
	o, ok := snapshot(ctx).Object(key)
	if !ok {
		return nil
	}
	return model.NewDrainStatus(snapshot(ctx), o)
}
