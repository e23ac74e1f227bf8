package xds

import (
	"cmp"
	"log/slog"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/envoy"
)

// Members takes proxies that register themselves as workloads of a WorkloadGroup, or that report the health of a
// WorkloadEntry's workload.
type Members interface {
	// Join makes the node, of the workload with that SPIFFE ID, a workload of its group or the proxy of its
	// WorkloadEntry. It connects from the source, which is not valid if it is not known. It returns nil if
	// reports of the proxy have no effect; it is called again with the next report. The error is a gRPC
	// status for the proxy. It must not block.
	Join(n envoy.Node, workload string, source netip.Addr) (Membership, error)
}

// Membership is the part of one stream in the registration of its proxy. Its methods must
// not block.
type Membership interface {
	// Report takes what the proxy's agent found; unhealthy is the reason, or empty.
	Report(unhealthy string)
	// Ended is closed when the proxy may not be registered any more; Err is the reason then, a
	// gRPC status.
	Ended() <-chan struct{}
	Err() error
	Leave()
}

// registration is the stream's part in the registration of its proxy.
type registration struct {
	member  Membership // nil: reports of the proxy have no effect
	unheard bool       // a report had no effect
}

// ended is closed when the proxy may not be registered any more.
func (r *registration) ended() <-chan struct{} {
	if r.member == nil {
		return nil
	}
	return r.member.Ended()
}

func (r *registration) leave() {
	if r.member != nil {
		r.member.Leave()
	}
}

// join registers a proxy that names a WorkloadGroup or a WorkloadEntry.
func (r *registration) join(c *xdsClient) error {
	name := cmp.Or(c.node.Group, c.node.Entry)
	if name == "" {
		return nil
	}
	if c.server.options.Members == nil {
		message := "a proxy wants to register itself: this hub accepts no registrations"
		if c.node.Group == "" {
			message = "a proxy wants to report the health of a WorkloadEntry: this hub accepts no reports"
		}
		c.provoke(message, slog.String("name", printable(name)))
		return nil
	}
	joined, err := c.server.options.Members.Join(c.node, c.workload, c.caller.Source)
	if err != nil {
		return err
	}
	r.member = joined
	return nil
}

// reportHealth takes a report of Istio's agent about the health of its workload. It counts as a
// request like others.
func (r *registration) reportHealth(c *xdsClient, q request) error {
	if !c.rate.Allow() {
		return status.Errorf(codes.ResourceExhausted, "more than %g requests in a second", c.server.options.Limits.Requests)
	}
	unhealthy := ""
	if q.refused {
		unhealthy = printable(q.errorText)
		if unhealthy == "" {
			unhealthy = "its agent says so"
		}
	}
	if r.member == nil && c.node.Group == "" && c.node.Entry != "" && c.server.options.Members != nil {
		// Reports may have an effect by now. A refusal leaves the stream as it was.
		err := r.join(c)
		if err != nil && !r.unheard {
			r.unheard = true
			c.provoke("ignoring health reports: the proxy is not that of its WorkloadEntry", slog.Any("err", err))
		}
	}
	if r.member != nil {
		r.member.Report(unhealthy)
	} else if !r.unheard {
		r.unheard = true
		c.provoke("ignoring health reports: the proxy names neither a WorkloadGroup nor a WorkloadEntry of its own")
	}
	return nil
}
