package xds

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/mcp"
)

const (
	// configurationPace is the time between two pushes of a type to a control plane.
	configurationPace = 250 * time.Millisecond
	// mostConfigurationTypes is how many types one stream may ask for.
	mostConfigurationTypes = 200
)

// asksForConfiguration reports whether the node is a control plane that wants to read
// configuration, as Istio's mark themselves.
func asksForConfiguration(n *corev3.Node) bool {
	return n.GetMetadata().GetFields()["GENERATOR"].GetStringValue() == "api"
}

// reader is a stream over which a control plane reads configuration.
type reader struct {
	stream *stream
	rate   *rate.Limiter
	asked  map[envoy.Type]*reading
	order  []envoy.Type // as they were asked for
}

// reading is one type of a reader.
type reading struct {
	has      btree.Map[*mcp.Resource] // what the client was sent last
	initial  map[string]string        // versions that the client has already, counted in its account; delta only
	known    bool                     // the hub knows the type
	answered bool                     // the first answer was sent
	waits    bool                     // for an answer to what was sent
	nonce    string
	sent     time.Time
}

// readConfiguration serves a control plane until the stream ends, and returns why.
func readConfiguration(ctx context.Context, st *stream, first message) error {
	options := st.server.options
	if options.Configuration == nil || st.client.caller.Reads == nil {
		return status.Error(codes.PermissionDenied,
			"no client may read the configuration of this hub: list the clients that may in mcp.clients")
	}
	st.client.node.ID = first.node.GetId()
	st.client.caller.Admit = func(envoy.Node) (string, error) { return st.client.caller.Reads() }
	if err := st.client.admit(time.Now()); err != nil {
		return err
	}
	if err := st.server.ready(ctx); err != nil {
		return err
	}
	log := st.client.log.With(
		slog.String("node", printable(first.node.GetId())), slog.String("workload", st.client.workload),
		slog.String("protocol", string(protocolOf(st.wire.delta))),
	)
	log.Info("a control plane reads the configuration")
	defer log.Info("a control plane does not read the configuration any more")
	r := &reader{
		stream: st, rate: rate.NewLimiter(rate.Limit(options.Limits.Requests), options.Limits.Burst),
		asked: map[envoy.Type]*reading{},
	}
	defer r.close()
	if err := r.take(first); err != nil {
		return err
	}
	return r.loop(ctx)
}

// take handles one request.
func (r *reader) take(m message) error {
	if err := m.check(r.stream.server.options.Limits); err != nil {
		return err
	}
	of := r.asked[m.kind]
	switch {
	case of == nil && len(r.asked) >= mostConfigurationTypes:
		return status.Errorf(codes.ResourceExhausted, "more than %d types", mostConfigurationTypes)
	case of == nil:
		if err := r.stream.client.account.addClaims(len(m.initial)); err != nil {
			return err
		}
		r.asked[m.kind] = &reading{initial: m.initial}
		r.order = append(r.order, m.kind)
	case m.nonce == of.nonce && of.waits:
		of.waits = false
		if of.known && m.refused {
			r.stream.server.options.Metrics.Count(Nacked, m.kind)
			r.stream.client.provoke("a control plane refuses configuration", slog.String("type", printable(string(m.kind))),
				slog.String("problem", reasonOf(m.errorText)))
		} else if of.known {
			r.stream.server.options.Metrics.Count(Acked, m.kind)
		}
		return nil
	}
	if !r.rate.Allow() {
		return status.Errorf(codes.ResourceExhausted, "more than %g requests in a second", r.stream.server.options.Limits.Requests)
	}
	return nil
}

// close gives back what the client said it has and was not answered.
func (r *reader) close() {
	for _, of := range r.asked {
		r.stream.client.account.removeClaims(len(of.initial))
	}
}

// loop is the life of the stream after the first request.
func (r *reader) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var sendLimit time.Time // zero: nothing is being sent
	for {
		snapshot, now := r.stream.server.options.Snapshots.Latest(), time.Now()
		if err := r.stream.client.stillAdmitted(now); err != nil {
			return err
		}
		wake := sendLimit
		if sendLimit.IsZero() {
			var f *frame
			f, wake = r.next(now)
			if f != nil {
				select {
				case r.stream.wire.out <- *f:
				case <-ctx.Done():
					return ctx.Err()
				}
				sendLimit = now.Add(r.stream.server.options.Limits.Send)
				wake = sendLimit
			}
		}
		wake = earliest(wake, r.stream.client.nextProof())
		if !wake.IsZero() {
			timer.Reset(wake.Sub(now))
		}
		select {
		case m := <-r.stream.wire.received:
			if err := r.take(m); err != nil {
				return err
			}
		case err := <-r.stream.wire.written:
			sendLimit = (time.Time{})
			if err != nil {
				return err
			}
		case <-snapshot.Superseded():
		case <-timer.C:
			if !sendLimit.IsZero() && !time.Now().Before(sendLimit) {
				return status.Errorf(codes.DeadlineExceeded, "the client took no response for %s", r.stream.server.options.Limits.Send)
			}
		case err := <-r.stream.wire.ended:
			return clean(err)
		case <-ctx.Done():
			return ctx.Err()
		case <-r.stream.server.drain:
			return errDraining
		}
	}
}

// next is the next response, or when to look again.
func (r *reader) next(now time.Time) (f *frame, wake time.Time) {
	for _, t := range r.order {
		of := r.asked[t]
		if of.waits {
			continue
		}
		if at := of.sent.Add(configurationPace); of.answered && now.Before(at) {
			wake = earliest(wake, at)
			continue
		}
		all, known := r.stream.server.options.Configuration.Of(string(t))
		of.known = known
		changed, removed := difference(of.has, all)
		if of.answered && len(changed)+len(removed) == 0 {
			continue
		}
		return r.respond(t, of, all, changed, removed, now), time.Time{}
	}
	return nil, wake
}

// respond makes the response with what changed, or with everything if the stream is SotW.
func (r *reader) respond(t envoy.Type, of *reading, all btree.Map[*mcp.Resource], changed []*mcp.Resource,
	removed []string, now time.Time,
) *frame {
	if !of.answered {
		changed = slices.DeleteFunc(changed, func(res *mcp.Resource) bool { return of.initial[res.Name] == res.Version })
		for _, name := range slices.Sorted(maps.Keys(of.initial)) {
			if _, still := all.Get(name); !still {
				removed = append(removed, name)
			}
		}
		r.stream.client.account.removeClaims(len(of.initial))
		of.initial = nil
	}
	of.has, of.answered = all, true
	of.waits, of.sent = true, now
	of.nonce = fmt.Sprintf("%s-%d", t, now.UnixNano())
	head := appendBytes(nil, fieldVersion, strconv.FormatUint(r.stream.server.options.Snapshots.Latest().Version(), 10))
	head = appendBytes(head, fieldTypeURL, string(t))
	head = appendBytes(head, fieldNonce, of.nonce)
	f := &frame{}
	if r.stream.wire.delta {
		for _, name := range removed {
			head = appendBytes(head, fieldRemoved, name)
		}
		f.buffers = append(f.buffers, mem.SliceBuffer(head))
		for _, res := range changed {
			f.buffers = append(f.buffers, mem.SliceBuffer(deltaOf(res)))
		}
	} else {
		f.buffers = append(f.buffers, mem.SliceBuffer(head))
		all.Walk(func(_ string, res *mcp.Resource) bool {
			f.buffers = append(f.buffers, mem.SliceBuffer(appendHead(nil, fieldResources, len(res.Any))), mem.SliceBuffer(res.Any))
			return false
		})
	}
	if of.known {
		r.stream.server.options.Metrics.Count(Sent, t)
		r.stream.server.options.Traffic.Pushed(t, f.buffers.Len(), -1)
	}
	return f
}

// deltaOf is the resource as a field of a delta response.
func deltaOf(res *mcp.Resource) []byte {
	inner := appendBytes(nil, fieldResVersion, res.Version)
	inner = appendBytes(inner, fieldResName, res.Name)
	inner = appendBytes(inner, fieldResBody, res.Any)
	return appendBytes(nil, fieldResources, inner)
}

// difference is what the second has and the first has not, or not so, and the names that
// it lacks.
func difference(a, b btree.Map[*mcp.Resource]) (changed []*mcp.Resource, removed []string) {
	btree.Diff(a, b, func(name string, before, after **mcp.Resource) {
		switch {
		case after == nil:
			removed = append(removed, name)
		case before == nil || *before != *after:
			changed = append(changed, *after)
		}
	})
	return changed, removed
}
