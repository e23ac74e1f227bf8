package graph

import (
	"context"
	"slices"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Bounds of resources in answers, in bytes on the wire; as JSON they are a few times that.
const (
	maxResourcePage   = 1 << 20
	maxResourceAnswer = 16 << 20
)

// Config lists the types that the proxy asked for and that were asked about.
func (proxyResolver) Config(_ context.Context, of *model.Proxy, types []string) ([]model.ProxyConfig, error) {
	all := []model.ProxyConfig{}
	for _, sync := range of.Sync {
		if sync.State != model.SyncStateNotRequested && (types == nil || slices.Contains(types, sync.TypeURL)) {
			all = append(all, model.ProxyConfig{TypeURL: sync.TypeURL, Of: model.ProxyKey(of.Key())})
		}
	}
	return all, nil
}

type sentResolver struct{ *resolver }

// Resources lists what the stream was sent of the type.
func (r sentResolver) Resources(
	ctx context.Context, of *model.ProxyConfig, first *int, after *string, last *int, before *string, name *string,
) (model.ProxyResourceConnection, error) {
	title := "resources of " + of.TypeURL
	window, err := window(title, first, after, last, before)
	if err != nil {
		return model.ProxyResourceConnection{}, err
	}
	var all []model.ProxyResource
	if r.Inspector != nil {
		for _, one := range r.Inspector.Sent(snapshot(ctx), connected(ctx), of.Of, of.TypeURL) {
			if name == nil || one.Name == *name {
				all = append(all, model.ProxyResource{Of: one})
			}
		}
	}
	list := model.List[model.ProxyResource]{
		Name: title, Key: model.ProxyResource.Name, Items: slices.Values(all), Count: func() int { return len(all) },
		Size: resourceSize, MaxPage: maxResourcePage,
	}
	return model.ProxyResourceConnection{Page: model.NewPage(list, window)}, nil
}

// resourceSize is what a resource counts for in a page.
func resourceSize(of model.ProxyResource) int { return of.Of.Sent.Size + of.Of.Acked.Size }

type sentResourceResolver struct{}

// Sent is what was sent last.
func (sentResourceResolver) Sent(ctx context.Context, of *model.ProxyResource) (*string, error) {
	return shownContent(ctx, of.Of.Sent)
}

// Acked is what was accepted last.
func (sentResourceResolver) Acked(ctx context.Context, of *model.ProxyResource) (*string, error) {
	return shownContent(ctx, of.Of.Acked)
}

// Causes are the objects that it was built from, at their revisions.
func (sentResourceResolver) Causes(ctx context.Context, of *model.ProxyResource) ([]model.ObjectRef, error) {
	causes := []model.ObjectRef{}
	if of.Of.Causes == nil {
		return causes, nil
	}
	for _, key := range of.Of.Causes() {
		revision := int64(0)
		if o, exists := snapshot(ctx).Object(key); exists {
			revision = o.Revision
		}
		causes = append(causes, model.NewObjectRef(key, revision))
	}
	return causes, nil
}

func shownContent(ctx context.Context, of fleet.Content) (*string, error) {
	if of.JSON == nil {
		return nil, nil
	}
	if seen(ctx).resources.Add(int64(of.Size)) > maxResourceAnswer {
		return nil, transport.Errorf(transport.BadUserInput,
			"the operation asks for more than %d MiB of resources of proxies; ask for one proxy, fewer types or smaller pages",
			maxResourceAnswer>>20)
	}
	text, err := of.JSON()
	if err != nil {
		return nil, err
	}
	shown := string(text)
	return &shown, nil
}
