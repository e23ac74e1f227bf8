package graph

import (
	"context"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/graph/transport"
)

// minRevisionWait is how long an operation waits for this hub to read a revision
// that another hub has made.
const minRevisionWait = 2 * time.Second

// awaitRevision waits until the hub has read the revision that the operation asks
// for, in the header of its request or in the argument minRevision of its fields.
// The context that it returns is that of the field that names the revision, for errors.
func (p pinned) awaitRevision(ctx context.Context) (context.Context, error) {
	least, at, err := leastRevision(ctx)
	if err != nil || least == 0 {
		return at, err
	}
	if p.options.Config.Objects == nil {
		return at, errNoConfig
	}
	limit := time.NewTimer(minRevisionWait)
	defer limit.Stop()
	for {
		seen := p.options.Config.Objects.Latest()
		if seen.Revision() >= least {
			return at, nil
		}
		select {
		case <-seen.Superseded():
		case <-limit.C:
			return at, transport.Errorf(transport.Unavailable,
				"minRevision: this hub has read the configuration up to revision %d, and not up to %d within %s: repeat the request",
				seen.Revision(), least, minRevisionWait)
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

func leastRevision(ctx context.Context) (least int64, at context.Context, err error) {
	least, err = readRevision(transport.HeaderMinRevision, transport.MinRevision(ctx))
	if err != nil {
		return 0, ctx, err
	}
	at = ctx
	operation := graphql.GetOperationContext(ctx)
	for _, field := range graphql.CollectFields(operation, operation.Operation.SelectionSet, []string{"Query"}) {
		text, _ := field.ArgumentMap(operation.Variables)["minRevision"].(string)
		revision, err := readRevision("minRevision", text)
		if err != nil || revision > least {
			least, at = revision, graphql.WithFieldContext(ctx, &graphql.FieldContext{Field: field})
		}
		if err != nil {
			return 0, at, err
		}
	}
	return least, at, nil
}

func readRevision(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision < 0 {
		return 0, transport.BadArgument(name, "%q is not a revision, such as \"42\"", cut(text))
	}
	return revision, nil
}

// refused answers an operation with nothing but the error.
func refused(ctx context.Context, err error) graphql.ResponseHandler {
	graphql.AddError(ctx, err)
	return graphql.OneShot(&graphql.Response{Errors: graphql.GetErrors(ctx)})
}
