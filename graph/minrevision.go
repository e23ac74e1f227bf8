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
func (p pinned) awaitRevision(ctx context.Context) error {
	least, err := leastRevision(ctx)
	if err != nil || least == 0 {
		return err
	}
	if p.options.Config.Objects == nil {
		return errNoConfig
	}
	limit := time.NewTimer(minRevisionWait)
	defer limit.Stop()
	for {
		seen := p.options.Config.Objects.Latest()
		if seen.Revision() >= least {
			return nil
		}
		select {
		case <-seen.Superseded():
		case <-limit.C:
			return transport.Errorf(transport.Unavailable,
				"minRevision: this hub has read the configuration up to revision %d, and not up to %d within %s: repeat the request", seen.Revision(), least, minRevisionWait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func leastRevision(ctx context.Context) (int64, error) {
	least, err := readRevision(transport.HeaderMinRevision, transport.MinRevision(ctx))
	if err != nil {
		return 0, err
	}
	operation := graphql.GetOperationContext(ctx)
	for _, field := range graphql.CollectFields(operation, operation.Operation.SelectionSet, []string{"Query"}) {
		text, _ := field.ArgumentMap(operation.Variables)["minRevision"].(string)
		revision, err := readRevision("minRevision", text)
		if err != nil {
			return 0, err
		}
		least = max(least, revision)
	}
	return least, nil
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
