package xds

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// A panic is contained where it happens: what a group computes stays as it was, and only the object or service at fault is
// affected. A panic elsewhere ends its stream. Nothing that an object holds ends the process, since the object would still be
// there after the next start.

// contributionOf returns the names that the service contributes; after a panic, those that it contributed before.
func (n *nameSet) contributionOf(svc *federation.Service, before []string, s *federation.Snapshot, r *federation.Reader) (names []string) {
	defer n.faults.contain(func() string { return faultOfService(svc.Key) }, func() []envoy.Reason {
		names = before
		faults, _ := n.faults.suspects(s, faultOfService(svc.Key), func(r *federation.Reader) error {
			n.of.make.contributes(n.of.kind, n.of.facet, svc, r)
			return nil
		})
		if len(faults) == 0 {
			faults = []envoy.Reason{n.faults.faulty(envoy.Reason{Service: svc.Key})}
		}
		return faults
	})
	return n.of.make.contributes(n.of.kind, n.of.facet, svc, r)
}

// fixedOf returns the names that no service contributes; after a panic, those as before.
func (n *nameSet) fixedOf(s *federation.Snapshot, r *federation.Reader) (names []string) {
	defer n.faults.contain(func() string { return faultOfNames }, func() []envoy.Reason {
		names = n.lastFixed
		faults, _ := n.faults.suspects(s, faultOfNames, func(r *federation.Reader) error {
			n.of.make.fixed(n.of.kind, n.of.facet, r)
			return nil
		})
		return faults
	})
	names = n.of.make.fixed(n.of.kind, n.of.facet, r)
	n.lastFixed = names
	return names
}

// contain has its caller fall back after a panic, and reports that. Without a panic it
// takes back what was reported.
func (f *faults) contain(of func() string, fallBack func() []envoy.Reason) {
	p := recover()
	if p == nil {
		if len(f.known) > 0 {
			f.set(of(), nil)
		}
		return
	}
	what := of()
	stack := debug.Stack()
	reasons := fallBack()
	f.failed(f.kind, strings.Trim(what, faultSeparator), accused(fmt.Errorf("panic: %v\n%s", p, stack), reasons))
	f.set(what, reasons)
}

// moved uses the new view of the stream's node, if it changed. After a panic the stream keeps the view that it
// has, and tries again with the next version. The first view of a stream is not taken here: it has nothing to fall back
// on, and ends.
func (st *stream) moved(s *federation.Snapshot) (moved bool) {
	defer func() {
		if p := recover(); p != nil {
			st.server.buildFailed("", "view of "+st.client.node.ID, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			moved = false
		}
	}()
	before := st.view
	st.view = st.server.views.Get(s, &st.client.node)
	if st.view == before {
		return false
	}
	st.vary()
	return true
}

// ended turns a panic of a stream into its end.
func (s *Server) ended(err *error) {
	if p := recover(); p != nil {
		s.options.Metrics.Count(StreamPanic, "")
		s.options.Logger.Error("ending a stream: it panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		*err = status.Error(codes.Internal, "the hub failed to serve this stream; its log says why")
	}
}
