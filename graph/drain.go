package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// drainStatus is what the Drain does in the operation's snapshot; nil for other kinds. What Drains
// do is counted once in an operation, for all of them, when a field asks for it.
func drainStatus(ctx context.Context, key federation.ObjectKey) *model.DrainStatus {
	if key.Of() != federation.DrainKind {
		return nil
	}
	sees := seen(ctx)
	o, ok := sees.snapshot().Object(key)
	if !ok {
		return nil
	}
	return model.NewDrainStatus(sees.snapshot(), o, func() federation.DrainProgress { return sees.drains()[key] })
}
