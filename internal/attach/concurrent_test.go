package attach_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/seal"
)

// store takes every object and shows its cluster at once, as the hub does.
type store struct {
	snapshots *federation.Aggregate
	oneUID    string // of every cluster; empty: each has its own
	mu        sync.Mutex
	applied   []federation.ClusterID
}

func (s *store) Apply(_ context.Context, r apply.Request) (apply.Result, error) {
	id := federation.ClusterID(r.Credentials[0].Of.Name)
	s.mu.Lock()
	s.applied = append(s.applied, id)
	s.mu.Unlock()
	s.snapshots.Open(federation.ShardKey{Cluster: id, Provider: federation.Operator}).Update(federation.Edit{
		Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{id: {Provider: federation.Kubernetes}}},
		Identity: &federation.ClusterIdentity{UID: cmp.Or(s.oneUID, "uid of "+string(id))},
	})
	return apply.Result{}, nil
}

func (s *store) Delete(context.Context, apply.Deletion) (apply.Result, error) {
	return apply.Result{}, nil
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.applied)
}

type emptyView struct{ view *config.View }

func (v emptyView) Latest() *config.View { return v.view }

// plan has every cluster that the snapshot shows as an object.
type plan struct{ snapshots *federation.Aggregate }

func (p plan) Latest() attach.Plan { return p }

func (p plan) Holder(id federation.ClusterID) (source string, yields, found bool) {
	_, shown := p.snapshots.Latest().Cluster(id)
	return attach.ObjectSource, false, shown
}
func (p plan) AliasHolder(string) (federation.ClusterID, bool) { return "", false }
func (p plan) Superseded() <-chan struct{}                     { return nil }

// attaching makes Clusters whose look is the test's.
func attaching(t *testing.T, look attach.Looker) (*attach.Clusters, *store) {
	t.Helper()
	keys, err := seal.OpenKeys(filepath.Join(t.TempDir(), "keys"), true)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{snapshots: federation.NewAggregate(nil)}
	return attach.New(attach.Options{
		Engine: s, Views: emptyView{&config.View{State: config.NewState(config.Options{})}}, Snapshots: s.snapshots, Plans: plan{s.snapshots},
		Credentials: attach.NewCredentialStore(nil, keys, "epoch"),
		Kinds:       map[federation.Provider]attach.Kind{federation.Kubernetes: {Look: look, Identified: true}}, Hub: "hub",
	}), s
}

func request(id string) attach.Request {
	return attach.Request{
		ID: federation.ClusterID(id), Provider: federation.Kubernetes,
		Credentials: attach.Credentials{Values: map[string]kube.Secret{"kubeconfig": kube.NewSecret("x")}},
	}
}

// TestAttachingManyTakesAsLongAsTheSlowest: of 100 requests ten are for clusters that
// do not answer. The others do not wait for them, nor the ten for each other.
func TestAttachingManyTakesAsLongAsTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters, store := attaching(t, func(ctx context.Context, r attach.Request) (report attach.Report) {
			if strings.HasSuffix(string(r.ID), "0") {
				<-ctx.Done()
				report.Add(attach.Reachability, apply.Refusal, "nothing answers")
				return report
			}
			<-time.NewTimer(time.Second).C
			report.UID = "uid of " + string(r.ID)
			return report
		})
		began := time.Now()
		var all sync.WaitGroup
		refused := make([]attach.Result, 100)
		for i := range refused {
			all.Go(func() {
				var err error
				refused[i], err = clusters.Attach(t.Context(), request(fmt.Sprintf("c%02d", i)))
				if err != nil {
					t.Error(err)
				}
			})
		}
		<-time.NewTimer(time.Second).C
		synctest.Wait()
		if n := store.count(); n != 90 {
			t.Errorf("%d clusters are attached after a second, want 90", n)
		}
		all.Wait()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("all of them took %v, want the time of one look", took)
		}
		for i, r := range refused {
			if (len(r.Errors) > 0) != (i%10 == 0) {
				t.Errorf("c%02d: %+v", i, r.Errors)
			}
		}
	})
}

// TestADetachedClusterIsNotAttachedElsewhere: the plan of what is attached may follow the
// objects a little later.
func TestADetachedClusterIsNotAttachedElsewhere(t *testing.T) {
	clusters, _ := attaching(t, func(context.Context, attach.Request) (report attach.Report) {
		report.UID = "the one"
		return report
	})
	if r, err := clusters.Attach(t.Context(), request("c0")); err != nil || len(r.Errors) > 0 {
		t.Fatal(r.Errors, err)
	}
	r, err := clusters.Detach(t.Context(), "c0", "a test")
	if err != nil || len(r.Errors) != 1 || r.Errors[0].Code != attach.NotAttached {
		t.Errorf("a cluster without an object that the plan still has: %+v, %v", r.Errors, err)
	}
}

// latePlan has a cluster that is shown no more, until the next plan.
type latePlan struct{ over chan struct{} }

func (p latePlan) Latest() attach.Plan { return p }

func (p latePlan) Holder(federation.ClusterID) (source string, yields, found bool) {
	select {
	case <-p.over:
		return "", false, false
	default:
		return attach.ObjectSource, false, true
	}
}
func (p latePlan) AliasHolder(string) (federation.ClusterID, bool) { return "", false }
func (p latePlan) Superseded() <-chan struct{}                     { return p.over }

type leaving struct{ attach.Registries }

func (leaving) Leaving(federation.ClusterID, bool) {}

// TestADetachEndsWhenThePlanHasNothingOfTheCluster: before, its ID would still be taken.
func TestADetachEndsWhenThePlanHasNothingOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, _ := config.NewState(config.Options{}).Next([]config.Event{{New: &config.Object{Key: attach.KeyOf("c0"), Manifest: []byte(`{}`)}}},
			1)
		snapshots := federation.NewAggregate(nil)
		late := latePlan{make(chan struct{})}
		clusters := attach.New(attach.Options{
			Engine: &store{snapshots: snapshots}, Views: emptyView{&config.View{State: state}}, Snapshots: snapshots,
			Plans: late, Registries: leaving{}, Hub: "hub",
		})
		ended := make(chan error, 1)
		go func() {
			r, err := clusters.Detach(t.Context(), "c0", "a test")
			if len(r.Errors) > 0 {
				t.Error(r.Errors)
			}
			ended <- err
		}()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("it ended while the plan had the cluster")
		}
		close(late.over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestOneClusterUnderManyIDsIsAttachedOnce: the requests come at the same time, and
// name one cluster (B-K16), or one alias.
func TestOneClusterUnderManyIDsIsAttachedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters, store := attaching(t, func(context.Context, attach.Request) (report attach.Report) {
			<-time.NewTimer(time.Second).C
			report.UID = "the one"
			return report
		})
		store.oneUID = "the one"
		var all sync.WaitGroup
		codes := make([]string, 5)
		for i := range codes {
			all.Go(func() {
				r, err := clusters.Attach(t.Context(), request([]string{"c0", "c0", "c1", "c2", "c3"}[i]))
				if err != nil {
					t.Error(err)
				}
				for _, e := range r.Errors {
					codes[i] = string(e.Code)
				}
			})
		}
		all.Wait()
		if n := store.count(); n != 1 {
			t.Errorf("one cluster is attached %d times: %v", n, codes)
		}
		slices.Sort(codes)
		if got := strings.Join(codes, " "); !strings.HasPrefix(got, " DUPLICATE_CLUSTER DUPLICATE_CLUSTER DUPLICATE_CLUSTER") {
			t.Errorf("the answers are %q", got)
		}
	})
}
