package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// rollouts have the states that a test gives them.
type rollouts struct {
	mu      sync.Mutex
	states  []graph.ProxyState
	changed chan struct{}
	asked   [][2]uint64
}

func newRollouts(states ...model.RolloutState) *rollouts {
	r := &rollouts{changed: make(chan struct{})}
	r.become(states...)
	return r
}

func (r *rollouts) become(states ...model.RolloutState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = nil
	for i, state := range states {
		p := graph.ProxyState{ProxyID: fleet.ProxyID{NodeID: fmt.Sprintf("proxy-%d", len(states)-i)}, State: state}
		if state == model.RolloutStateRejected {
			p.Error = "port 0"
		}
		r.states = append(r.states, p)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rollouts) Rollout(after, upTo uint64) ([]graph.ProxyState, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, [2]uint64{after, upTo})
	return r.states, r.changed
}

const (
	pending   = model.RolloutStatePending
	delivered = model.RolloutStateDelivered
	acked     = model.RolloutStateAcked
	rejected  = model.RolloutStateRejected
)

// waitingFor applies with waitFor in fake time.
func waitingFor(t *testing.T, c configured, wait string) (rollout map[string]any, took time.Duration) {
	t.Helper()
	query := `mutation($m:[String!]){apply(input:{manifests:$m,waitFor:` + wait +
		`}){rollout{delivered acked rejected pending reached proxies(first:2){totalCount nodes{nodeID state error}}}}}`
	exec := executor.New(graph.New(c.options))
	ctx, cancel := context.WithTimeout(graphql.StartOperationTrace(t.Context()), 10*time.Second)
	defer cancel()
	began := time.Now()
	operation, errs := exec.CreateOperationContext(ctx,
		&graphql.RawParams{Query: query, Variables: map[string]any{"m": route("shop", fmt.Sprint("r", began.UnixNano()), "x")}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	next, ctx := exec.DispatchOperation(ctx, operation)
	answer := next(ctx)
	var data map[string]any
	if err := json.Unmarshal(answer.Data, &data); err != nil || len(answer.Errors) > 0 {
		t.Fatal(err, answer.Errors)
	}
	return at(data, "apply", "rollout").(map[string]any), time.Since(began)
}

func TestAnswersWaitForProxies(t *testing.T) {
	for name, step := range map[string]struct {
		wait    string
		states  []model.RolloutState
		reached bool
		took    time.Duration
	}{
		"all have it":    {"{state:ACKED}", []model.RolloutState{acked, acked}, true, 0},
		"a share has it": {"{state:ACKED,share:0.5}", []model.RolloutState{acked, pending}, true, 0},
		"none is needed": {"{state:ACKED,share:0}", []model.RolloutState{pending}, true, 0},
		"no proxies":     {"{state:ACKED}", nil, true, 0},
		"sent is enough": {"{state:DELIVERED}", []model.RolloutState{delivered, rejected, acked}, true, 0},
		"later":          {"{state:ACKED}", []model.RolloutState{acked, delivered}, true, time.Second},
		"too late":       {"{state:ACKED,timeout:\"500ms\"}", []model.RolloutState{acked, delivered}, false, 500 * time.Millisecond},
		"refused":        {"{state:ACKED,timeout:\"3s\"}", []model.RolloutState{rejected, acked, pending}, false, 0},
		"within the answers time": {
			"{state:ACKED,timeout:\"5m\"}",
			[]model.RolloutState{delivered, delivered, acked},
			false, 9500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRollouts(step.states...)
				c := newConfigured(t, func(o *graph.Options) { o.Config.Rollouts = r })
				if len(step.states) == 2 {
					time.AfterFunc(time.Second, func() { r.become(acked, acked) })
				}
				got, took := waitingFor(t, c, step.wait)
				if got["reached"] != step.reached || took != step.took {
					t.Errorf("%v after %v", got, took)
				}
			})
		})
	}
}

// TestR42WaitsReadOnlyWhatChanged: a wait reads the rollout when it begins and when
// proxies answered, and at no other time.
func TestR42WaitsReadOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollouts(delivered, delivered)
		c := newConfigured(t, func(o *graph.Options) { o.Config.Rollouts = r })
		time.AfterFunc(time.Second, func() { r.become(acked, delivered) })
		time.AfterFunc(4*time.Second, func() { r.become(acked, acked) })
		got, took := waitingFor(t, c, "{state:ACKED}")
		if got["reached"] != true || took != 4*time.Second || len(r.asked) != 3 {
			t.Errorf("%v after %v and %d reads", got, took, len(r.asked))
		}
	})
}

func TestRolloutNamesEveryProxy(t *testing.T) {
	r := newRollouts(pending, delivered, acked, rejected)
	c := newConfigured(t, func(o *graph.Options) { o.Config.Rollouts = r })
	const query = `mutation($m:[String!]){apply(input:{manifests:$m,idempotencyKey:"k"}){rollout{delivered acked rejected pending reached proxies(first:2){totalCount pageInfo{endCursor} nodes{nodeID state error}}}}}`
	before := c.mesh.Latest().Version()
	got := at(c.answer(query, map[string]any{"m": route("shop", "a", "x")}), "apply", "rollout")
	for field, want := range map[string]any{"delivered": 3.0, "acked": 1.0, "rejected": 1.0, "pending": 1.0, "reached": nil} {
		c.want(got, want, field)
	}
	c.want(got, 4.0, "proxies", "totalCount")
	c.want(got, map[string]any{"nodeID": "proxy-1", "state": "REJECTED", "error": "port 0"}, "proxies", "nodes", 0)
	c.want(got, map[string]any{"nodeID": "proxy-2", "state": "ACKED", "error": nil}, "proxies", "nodes", 1)
	if want := [2]uint64{before, c.mesh.Latest().Version()}; r.asked[0] != want || want[0] == want[1] {
		t.Errorf("the change is that of %v, not %v", r.asked[0], want)
	}
	// A repetition that changes nothing asks for the current configuration.
	c.answer(`mutation{rollback(input:{to:"1"}){rollout{pending}}}`, nil)
	if got := r.asked[1]; got != [2]uint64{0, c.mesh.Latest().Version()} {
		t.Errorf("the rollout of the current configuration is %v", got)
	}
}

// TestU36ARepetitionWaitsForTheProxiesOfItsChange: a client waits longer by repeating its
// request, and other changes come meanwhile.
func TestU36ARepetitionWaitsForTheProxiesOfItsChange(t *testing.T) {
	r := newRollouts(acked)
	c := newConfigured(t, func(o *graph.Options) { o.Config.Rollouts = r })
	before := c.mesh.Latest().Version()
	c.answer(`mutation($m:[String!]){apply(input:{manifests:$m,idempotencyKey:"k"}){rollout{pending}}}`,
		map[string]any{"m": route("shop", "a", "x")})
	change := [2]uint64{before, c.mesh.Latest().Version()}
	c.apply(route("shop", "b", "x"))
	c.answer(`mutation{rollback(input:{to:"2",idempotencyKey:"k"}){rollout{pending}}}`, nil) // changes nothing, as a repetition
	if r.asked[0] != change || r.asked[1] == change || r.asked[2] != change {
		t.Errorf("the change is that of %v, the repetition asks for %v", change, r.asked)
	}
}

// previewer would change what one connected and one unknown proxy get.
type previewer struct{}

func (previewer) Preview(_ context.Context, before, after *federation.Snapshot) ([]fleet.ProxyID, []model.PreviewResource, error) {
	if before == nil || after == nil {
		return nil, nil, errors.New("a preview without snapshots")
	}
	return []fleet.ProxyID{{Cluster: "c1", NodeID: sidecarID}, {Cluster: "c1", NodeID: "gone"}},
		[]model.PreviewResource{{TypeURL: lds, Name: "a", Action: model.ChangeActionUpdate}}, nil
}

func TestDryRunsShowWhatProxiesWouldGet(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) { o.Fleet, o.Config.Previewer = proxies(), previewer{} })
	const query = `mutation($m:[String!]){apply(input:{dryRun:true,manifests:$m}){findings{code} preview{proxies{nodeID} resources{typeUrl name action diff}}}}`
	data := c.answer(query, map[string]any{"m": route("shop", "a", "x")})
	c.want(data, map[string]any{
		"proxies":   []any{map[string]any{"nodeID": sidecarID}},
		"resources": []any{map[string]any{"typeUrl": lds, "name": "a", "action": "UPDATE", "diff": nil}},
	}, "apply", "preview")
	c.want(data, []any{map[string]any{"code": "UNUSED"}, map[string]any{"code": "NOT_BUILT"}}, "apply", "findings")
}

// TestU91ARejectionIsFoundAmongManyProxies: also if it is on no first page of all proxies.
func TestU91ARejectionIsFoundAmongManyProxies(t *testing.T) {
	states := slices.Repeat([]model.RolloutState{acked}, 60)
	states[len(states)-9] = rejected // of proxy-9, which is the last by name
	c := newConfigured(t, func(o *graph.Options) { o.Config.Rollouts = newRollouts(states...) })
	list := "{totalCount nodes{nodeID error}}"
	data := c.answer(`mutation($input:ApplyInput!){apply(input:$input){rollout{all:proxies(first:50){nodes{nodeID}}
		rejected:proxies(first:50,filter:{state:REJECTED})`+list+` pending:proxies(filter:{state:PENDING})`+list+`}}}`,
		input(map[string]any{"manifests": route("shop", "cart", "a")}))
	c.want(data, map[string]any{
		"totalCount": 1.0, "nodes": []any{map[string]any{"nodeID": "proxy-9", "error": "port 0"}},
	}, "apply", "rollout", "rejected")
	c.want(data, map[string]any{"totalCount": 0.0, "nodes": []any{}}, "apply", "rollout", "pending")
}
