package client

import (
	"context"
	"iter"
)

// pageSize is how many things are asked for at once.
const pageSize = 250

// page is one page of a list with where it ends.
type page[T any] struct {
	items []T
	end   PageEnd
}

// orZero is what a nullable field has; a hub says why it is null with an error.
func orZero[T any](of *T) T {
	if of == nil {
		var zero T
		return zero
	}
	return *of
}

// all yields every item of a list, page by page, and at last an error, if any.
func all[T any](ask func(after *string) (page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var after *string
		for {
			next, err := ask(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range next.items {
				if !yield(item, nil) {
					return
				}
			}
			after = next.end.EndCursor
			if !next.end.HasNextPage || after == nil {
				return
			}
		}
	}
}

// Objects yields the configuration objects that fit.
func (c *Client) Objects(ctx context.Context, filter *ConfigObjectFilter) iter.Seq2[ObjectSummary, error] {
	return all(func(after *string) (page[ObjectSummary], error) {
		answer, err := Objects(ctx, c, pageSize, after, filter)
		if err != nil {
			return page[ObjectSummary]{}, err
		}
		found := orZero(answer.ConfigObjects)
		return page[ObjectSummary]{found.Nodes, found.PageInfo}, nil
	})
}

// Findings yields the findings of all configuration objects, object by object.
func (c *Client) Findings(ctx context.Context) iter.Seq2[Finding, error] {
	has := true
	pages := all(func(after *string) (page[ObjectWithFindings], error) {
		answer, err := ObjectFindings(ctx, c, pageSize, after, &ConfigObjectFilter{HasFindings: &has})
		if err != nil {
			return page[ObjectWithFindings]{}, err
		}
		found := orZero(answer.ConfigObjects)
		return page[ObjectWithFindings]{found.Nodes, found.PageInfo}, nil
	})
	return func(yield func(Finding, error) bool) {
		for o, err := range pages {
			if err != nil {
				yield(Finding{}, err)
				return
			}
			for _, f := range o.Status.Findings {
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// Services yields the services of the mesh that fit.
func (c *Client) Services(ctx context.Context, filter *ServiceFilter) iter.Seq2[ServiceSummary, error] {
	return all(func(after *string) (page[ServiceSummary], error) {
		answer, err := Services(ctx, c, pageSize, after, filter, nil)
		if err != nil {
			return page[ServiceSummary]{}, err
		}
		found := orZero(answer.Services)
		return page[ServiceSummary]{found.Nodes, found.PageInfo}, nil
	})
}

// Clusters yields the attached clusters.
func (c *Client) Clusters(ctx context.Context) iter.Seq2[ClusterSummary, error] {
	return all(func(after *string) (page[ClusterSummary], error) {
		answer, err := Clusters(ctx, c, pageSize, after)
		if err != nil {
			return page[ClusterSummary]{}, err
		}
		found := orZero(answer.Clusters)
		return page[ClusterSummary]{found.Nodes, found.PageInfo}, nil
	})
}

// Proxies yields the connected proxies that fit, each stream once.
func (c *Client) Proxies(ctx context.Context, filter *ProxyFilter) iter.Seq2[ProxySummary, error] {
	return all(func(after *string) (page[ProxySummary], error) {
		answer, err := Proxies(ctx, c, pageSize, after, filter, nil)
		if err != nil {
			return page[ProxySummary]{}, err
		}
		found := orZero(answer.Proxies)
		return page[ProxySummary]{found.Nodes, found.PageInfo}, nil
	})
}

// SentResources yields what the latest stream of a proxy was sent of a type, or the one
// resource of the name; with content and causes only where asked for. The proxy is
// CLUSTER/NODE_ID, or the node ID if no other cluster has it.
func (c *Client) SentResources(ctx context.Context, proxy, typeURL string, name *string, content bool) iter.Seq2[SentResource, error] {
	return all(func(after *string) (page[SentResource], error) {
		answer, err := ProxyConfig(ctx, c, proxy, []string{typeURL}, name, after, content)
		if err != nil || answer.Proxy == nil || len(answer.Proxy.Config) == 0 {
			return page[SentResource]{}, err
		}
		found := answer.Proxy.Config[0].Resources
		return page[SentResource]{found.Nodes, found.PageInfo}, nil
	})
}

// History yields the changes of the configuration that fit, the newest first.
func (c *Client) History(ctx context.Context, filter *HistoryFilter) iter.Seq2[ConfigStep, error] {
	return all(func(after *string) (page[ConfigStep], error) {
		answer, err := History(ctx, c, pageSize, after, filter)
		if err != nil {
			return page[ConfigStep]{}, err
		}
		found := orZero(answer.History)
		return page[ConfigStep]{found.Nodes, found.PageInfo}, nil
	})
}

// Networks yields the networks that the hub knows.
func (c *Client) Networks(ctx context.Context) iter.Seq2[NetworkSummary, error] {
	return all(func(after *string) (page[NetworkSummary], error) {
		answer, err := Networks(ctx, c, pageSize, after)
		if err != nil {
			return page[NetworkSummary]{}, err
		}
		found := orZero(answer.Networks)
		return page[NetworkSummary]{found.Nodes, found.PageInfo}, nil
	})
}
