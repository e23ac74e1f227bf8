package graph_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"

	"isthmus.dev/isthmus/graph"
)

// event is what the contract's subscription shows of a change.
type event struct {
	Cursor          *string
	SnapshotVersion string
	Resync          bool
	Services        []struct {
		Action  string
		Service struct {
			Hostname, Namespace string
			Endpoints           struct{ TotalCount int }
		}
	}
	Clusters []struct {
		Action  string
		Cluster struct {
			ClusterID string
			Status    struct{ Phase string }
		}
	}
	ConfigObjects []struct {
		Action string
		Object struct {
			Group, Kind, Namespace, Name string
			Revision                     *string
		}
	}
	Proxies []struct {
		Action string
		Proxy  struct{ NodeID string }
	}
}

func (e event) size() int { return len(e.Services) + len(e.Clusters) + len(e.ConfigObjects) }

// stream is a subscription to changes.
type stream struct {
	t       *testing.T
	stop    context.CancelFunc
	next    func() *graphql.Response
	waiting chan *graphql.Response // the answer that read has not got yet
}

// subscriber subscribes to one schema, as one hub does.
type subscriber struct {
	t    *testing.T
	exec *executor.Executor
	text string
}

func newSubscriber(t *testing.T, options graph.Options) subscriber {
	t.Helper()
	return subscriber{t: t, exec: executor.New(graph.New(options)), text: contract(t)["Changes"]}
}

// changes subscribes with the contract's operation.
func (s subscriber) changes(after string, filter map[string]any) *stream {
	s.t.Helper()
	variables := map[string]any{}
	if after != "" {
		variables["after"] = after
	}
	if filter != nil {
		variables["filter"] = filter
	}
	ctx, stop := context.WithCancel(graphql.StartOperationTrace(s.t.Context()))
	operation, errs := s.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: s.text, Variables: variables})
	if len(errs) > 0 {
		s.t.Fatal(errs)
	}
	next, ctx := s.exec.DispatchOperation(ctx, operation)
	s.t.Cleanup(stop)
	return &stream{t: s.t, stop: stop, next: func() *graphql.Response { return next(ctx) }}
}

// read waits for the next event.
func (s *stream) read() event {
	s.t.Helper()
	if s.waiting == nil {
		s.await()
	}
	answer := <-s.waiting
	s.waiting = nil
	if answer == nil {
		s.t.Fatal("the subscription has ended")
	}
	var data struct{ Changes event }
	if err := json.Unmarshal(answer.Data, &data); err != nil || len(answer.Errors) > 0 {
		s.t.Fatal(err, answer.Errors)
	}
	return data.Changes
}

// await asks for the next event without waiting for it.
func (s *stream) await() {
	s.waiting = make(chan *graphql.Response, 1)
	go func(answer chan<- *graphql.Response) { answer <- s.next() }(s.waiting)
}

// silent reports whether no event has come, once everything has come to rest: it is
// for bubbles of testing/synctest, after a wait.
func (s *stream) silent() bool {
	if s.waiting == nil {
		s.await()
	}
	waitUntilIdle()
	return len(s.waiting) == 0
}

// whole reads a whole picture and returns its events as one, and how many there
// were.
func (s *stream) whole() (state event, pages int) {
	s.t.Helper()
	for {
		e := s.read()
		pages++
		if !e.Resync || e.size() > 500 {
			s.t.Fatalf("a chunk of a resync has resync %v and %d things", e.Resync, e.size())
		}
		state.Services = append(state.Services, e.Services...)
		state.Clusters = append(state.Clusters, e.Clusters...)
		state.ConfigObjects = append(state.ConfigObjects, e.ConfigObjects...)
		state.Cursor, state.SnapshotVersion = e.Cursor, e.SnapshotVersion
		if e.Cursor != nil {
			return state, pages
		}
	}
}
