package graph

import (
	"context"
	"math"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Explain says which endpoints of a service a proxy sends to, and why.
func (q query) Explain(ctx context.Context, proxy, hostname string, port int, _ *string) (*model.Explanation, error) {
	if port < 1 || port > math.MaxUint16 {
		return nil, transport.Errorf(transport.BadUserInput, "port %d: a port is a number from 1 to %d", port, math.MaxUint16)
	}
	from, host := snapshot(ctx), federation.Hostname(strings.ToLower(strings.TrimSuffix(hostname, ".")))
	if len(from.ByHostname(host)) == 0 {
		return nil, transport.Errorf(transport.NotFound, "there is no service %s", host)
	}
	var all []federation.Explanation
	known := false
	if q.Explainer != nil {
		all, known = q.Explainer.Explain(from, proxy, host, uint16(port))
	}
	if !known {
		return nil, transport.Errorf(transport.NotFound, "no proxy %q is connected, or several have that name: give its whole node ID, with CLUSTER/ before it where proxies of several clusters have the same", proxy)
	}
	out := &model.Explanation{Version: strconv.FormatUint(from.Version(), 10), Endpoints: make([]model.EndpointExplanation, len(all))}
	for i, e := range all {
		out.Endpoints[i] = model.NewEndpointExplanation(e)
	}
	return out, nil
}
