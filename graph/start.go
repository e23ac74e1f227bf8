package graph

import (
	"context"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/graph/transport"
)

// Start reports whether the hub has read what the mesh consists of.
type Start interface {
	// Ready is closed when it has. Before that a snapshot lacks most of the mesh and does not show it.
	Ready() <-chan struct{}
	// Check returns what /readyz answers. It must not block.
	Check() (ready bool, reasons []string)
}

// startWait is how long an operation waits for a hub that starts. It is less than the time limit of a query, so that
// the client learns what the hub waits for.
const startWait = 5 * time.Second

// awaitStart refuses an operation that would take what was read so far for all of the mesh. A change waits for the
// store alone: it may be what another source needs to become readable.
func (p pinned) awaitStart(ctx context.Context) error {
	if p.options.Start == nil {
		return nil
	}
	select {
	case <-p.options.Start.Ready():
		return nil
	default:
	}
	operation := graphql.GetOperationContext(ctx).Operation
	limit := time.NewTimer(startWait)
	defer limit.Stop()
	switch {
	case operation.Operation == ast.Mutation:
		return p.awaitStore(ctx, limit.C)
	case !p.showsMesh(operation.SelectionSet):
		return nil
	}
	select {
	case <-p.options.Start.Ready():
		return nil
	case <-limit.C:
		return p.starting()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitStore waits until the first source of the configuration was read, which is the one that changes are made in.
func (p pinned) awaitStore(ctx context.Context, limit <-chan time.Time) error {
	objects := p.options.Config.Objects
	if objects == nil {
		return nil
	}
	for {
		seen := objects.Latest()
		if len(seen.Sources) == 0 || seen.Sources[0].Synced {
			return nil
		}
		select {
		case <-seen.Superseded():
		case <-limit:
			return p.starting()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p pinned) starting() error {
	_, reasons := p.options.Start.Check()
	return transport.Errorf(transport.Unavailable,
		"the hub is starting and has not read the whole mesh: repeat the request; { hub { ready readinessReasons } } says what the hub waits for: %s",
		strings.Join(reasons, "; "))
}

// alwaysAnswered are the fields of queries that say what the hub is and how it is doing, but nothing of the mesh.
var alwaysAnswered = map[string]bool{
	"hub": true, "configSources": true, "certificateAuthority": true, "kinds": true, "errorCodes": true, "findingCodes": true,
	"__schema": true, "__type": true, "__typename": true,
}

// showsMesh reports whether an operation has a field that shows what the mesh consists of.
func (p pinned) showsMesh(selected ast.SelectionSet) bool {
	return anyField(selected, func(of *ast.Field) bool { return !alwaysAnswered[of.Name] || p.leadsToMesh(of.SelectionSet) })
}

// leadsToMesh reports whether a field leads from there to an object of the mesh, or to a list of them.
func (p pinned) leadsToMesh(selected ast.SelectionSet) bool {
	types := p.Schema()
	return anyField(selected, func(of *ast.Field) bool {
		if of.Definition == nil {
			return true
		}
		name := of.Definition.Type.Name()
		isNode := name == "Node" || strings.HasSuffix(name, "Connection")
		for _, implemented := range types.GetImplements(types.Types[name]) {
			isNode = isNode || implemented.Name == "Node"
		}
		return isNode || p.leadsToMesh(of.SelectionSet)
	})
}

// anyField reports whether a selected field holds. Fields that directives exclude count, too.
func anyField(selected ast.SelectionSet, holds func(*ast.Field) bool) bool {
	for _, one := range selected {
		found := false
		switch one := one.(type) {
		case *ast.Field:
			found = holds(one)
		case *ast.InlineFragment:
			found = anyField(one.SelectionSet, holds)
		case *ast.FragmentSpread:
			found = one.Definition == nil || anyField(one.Definition.SelectionSet, holds)
		}
		if found {
			return true
		}
	}
	return false
}
