package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
)

func TestAppliedObjectsAreInTheSnapshot(t *testing.T) {
	w := newFixture(t)
	r := w.must(route("web", "v1") + external("api.example.com"))
	if got := actions(r); got != "CREATE api; CREATE web" || r.Revision != 1 {
		t.Errorf("revision %d: %s", r.Revision, got)
	}
	s := w.snapshots.Latest()
	if _, ok := s.Object(routeKey("web")); !ok || s.Revision() != 1 {
		t.Errorf("the snapshot at revision %d lacks the VirtualService", s.Revision())
	}
	svc, ok := s.Service(federation.ServiceKey{Hostname: "api.example.com", Namespace: "shop"})
	if !ok || len(svc.ClusterVIPs.Of("hub")) == 0 {
		t.Fatalf("the ServiceEntry's service is %+v", svc)
	}
	if same := w.must(external("api.example.com")); actions(same) != "UNCHANGED api" || same.Revision != 1 {
		t.Errorf("the same once more: revision %d, %s", same.Revision, actions(same))
	}
	changed := w.must(route("web", "v2"))
	if actions(changed) != "UPDATE web" || changed.Revision != 2 || !strings.Contains(changed.Changes[0].Diff(), "v2") {
		t.Errorf("revision %d, %s:\n%s", changed.Revision, actions(changed), changed.Changes[0].Diff())
	}
}

func TestStoredObjectSaysWhoItIs(t *testing.T) {
	w := newFixture(t)
	meta := func(r apply.Result) (m struct {
		UID               string
		CreationTimestamp string
		Generation        int64
	},
	) {
		var o struct{ Metadata any }
		o.Metadata = &m
		if err := json.Unmarshal(r.Changes[0].Object.Manifest, &o); err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := meta(w.must(route("web", "v1")))
	second := meta(w.must(route("web", "v2")))
	labelled := meta(w.must(strings.Replace(route("web", "v2"), "namespace: shop", "namespace: shop, labels: {a: b}", 1)))
	if first.UID == "" || first.CreationTimestamp == "" || second.UID != first.UID || second.CreationTimestamp != first.CreationTimestamp {
		t.Errorf("first %+v, then %+v", first, second)
	}
	if first.Generation != 1 || second.Generation != 2 || labelled.Generation != 2 {
		t.Errorf("generations are %d, %d and, with a label, %d; want 1, 2, 2", first.Generation, second.Generation, labelled.Generation)
	}
}

func TestBY3OneBadDocumentRefusesTheSet(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"))
	for name, c := range map[string]struct{ manifests, want string }{
		"unknown kind": {route("a", "v1") + strings.Replace(route("b", "v1"), "VirtualService", "VirtualServce", 1), "UNKNOWN_KIND kind"},
		"unknown fields": {strings.Replace(route("a", "v1"), "hosts:", "hsots: [x]\n  hosts:", 1) + strings.Replace(route("b", "v1"), "http:",
			"htpt:", 1), "UNKNOWN_FIELD spec.hsots; UNKNOWN_FIELD spec.htpt"},
		"no name":         {strings.Replace(route("a", "v1"), "name: a,", "", 1), "REQUIRED metadata.name"},
		"twice":           {route("a", "v1") + route("a", "v2"), "DUPLICATE_OBJECT metadata.name"},
		"empty":           {"", "EMPTY "},
		"only a comment":  {"# nothing\n", "EMPTY "},
		"alias":           {"a: &x 1\nb: *x\n", "ANCHOR a; ANCHOR b"},
		"one bad of many": {route("a", "v1") + "kind: [", "SYNTAX "},
		"each in its way": {
			strings.Replace(route("a", "v1"), "hosts:", "hsots: [x]\n  hosts:", 1) + strings.Replace(route("b", "v1"),
				"VirtualService", "VirtualServce", 1) +
				strings.Replace(route("c", "v1"), "hosts: ", "hosts: &x ", 1) + strings.Replace(route("d", "v1"), "hosts: ", "hosts: x\n  hsots: ", 1),
			"UNKNOWN_FIELD spec.hsots; UNKNOWN_KIND kind; ANCHOR spec.hosts; NOT_CHECKED ; TYPE spec.hosts; UNKNOWN_FIELD spec.hsots",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.apply(c.manifests)
			if got := codes(r); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if now := w.views.Latest(); now.Revision() != 1 || now.State.Len() != 1 {
				t.Errorf("something was written: revision %d, %d objects", now.Revision(), now.State.Len())
			}
		})
	}
}

func TestProblemsHaveTheirPlace(t *testing.T) {
	w := newFixture(t)
	r := w.apply(route("a", "v1") + strings.Replace(route("b", "v1"), "hosts:", "hsots:", 1))
	if len(r.Errors) == 0 {
		t.Fatal("nothing is refused")
	}
	e := r.Errors[0]
	if e.Place.File != "mesh.yaml" || e.Place.Document != 2 || e.Place.Line != 13 || e.Key != routeKey("b") ||
		!strings.Contains(e.Message, "hosts") {
		t.Errorf("the problem is %+v", e)
	}
}

func TestConflictNamesFieldManagerAndBothValues(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"), manager("team-a"))
	r := w.apply(route("web", "v2"), manager("team-b"))
	if codes(r) != "CONFLICT .spec.http" {
		t.Fatalf("refused with %s", codes(r))
	}
	e := r.Errors[0]
	if e.Manager != "team-a" || !strings.Contains(e.Message, "v1") || !strings.Contains(e.Message, "v2") {
		t.Errorf("the conflict is %+v", e)
	}
	if forced := w.must(route("web", "v2"), manager("team-b"), force); actions(forced) != "UPDATE web" {
		t.Errorf("by force: %s", actions(forced))
	}
	if back := w.apply(route("web", "v1"), manager("team-a")); codes(back) != "CONFLICT .spec.http" {
		t.Errorf("the field belongs to team-b now, team-a gets %q", codes(back))
	}
}

func TestPruneRemovesWhatLeftTheSet(t *testing.T) {
	w := newFixture(t)
	w.must(route("other", "v1"))
	w.must(route("a", "v1")+route("b", "v1")+route("c", "v1"), prune("shop"))
	if r := w.must(route("a", "v1")+route("c", "v1"), prune("shop")); actions(r) != "UNCHANGED a; DELETE b; UNCHANGED c" {
		t.Errorf("%s", actions(r))
	}
	protected := strings.Replace(route("c", "v1"), "namespace: shop", `namespace: shop, annotations: {isthmus.dev/prune: "false"}`, 1)
	w.must(route("a", "v1")+protected, prune("shop"))
	if r := w.apply(route("a", "v1"), prune("shop")); codes(r) != "PROTECTED metadata.annotations[isthmus.dev/prune]" {
		t.Errorf("a protected object: %s, %s", codes(r), actions(r))
	}
	if r := w.apply("# nothing", prune("shop")); codes(r) != "EMPTY " {
		t.Errorf("an empty file means %q, %s", codes(r), actions(r))
	}
	if r := w.apply(route("a", "v1"), func(r *apply.Request) { r.Prune = true }); codes(r) != "INVALID_REQUEST set" {
		t.Errorf("prune without a set: %q", codes(r))
	}
	if _, ok := w.snapshots.Latest().Object(routeKey("other")); !ok {
		t.Error("an object outside of the set is gone")
	}
}

func TestExpectedRevisions(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"))
	w.must(route("other", "v1"))
	at := func(n int64) func(*apply.Request) { return func(r *apply.Request) { r.ExpectedRevision = &n } }
	each := func(name string, n int64) func(*apply.Request) {
		return func(r *apply.Request) {
			r.ExpectedRevisions = map[federation.ObjectKey]int64{routeKey(name): n}
		}
	}
	for name, c := range map[string]struct {
		change func(*apply.Request)
		want   string
	}{
		"set behind":       {at(1), "PRECONDITION_FAILED expectedRevision"},
		"set":              {at(2), ""},
		"object":           {each("web", 1), ""},
		"object elsewhere": {each("web", 2), "PRECONDITION_FAILED expectedRevisions"},
		"exists":           {each("web", 0), "PRECONDITION_FAILED expectedRevisions"},
		"does not exist":   {each("new", 0), ""},
		"should exist":     {each("new", 1), "PRECONDITION_FAILED expectedRevisions"},
	} {
		if r := w.apply(route("web", "v2"), c.change, dryRun); codes(r) != c.want {
			t.Errorf("%s: %q, want %q", name, codes(r), c.want)
		}
	}
}

func TestRepeatedRequestChangesNothing(t *testing.T) {
	w := newFixture(t)
	once := func(r *apply.Request) { r.IdempotencyKey = "deploy-7" }
	first := w.must(route("web", "v1"), once)
	w.must(route("web", "v2"))
	again := w.must(route("web", "v1"), once)
	if again.Revision != first.Revision || actions(again) != "CREATE web" || w.views.Latest().Revision() != 2 {
		t.Errorf("the repetition: revision %d, %s; the configuration is at %d", again.Revision, actions(again), w.views.Latest().Revision())
	}
}

func TestDryRunShowsWhatTheApplyPublishes(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"))
	change := route("web", "v2") + external("api.example.com") + external("db.example.com")
	dry := w.must(change, dryRun)
	if w.views.Latest().Revision() != 1 || dry.Revision != 1 || !dry.DryRun {
		t.Fatalf("the dry run wrote: %+v", dry)
	}
	real := w.must(change)
	now := w.snapshots.Latest()
	if actions(dry) != actions(real) || now.Services().Len() != dry.After.Services().Len() {
		t.Errorf("the dry run said %s and %d services; it became %s and %d", actions(dry), dry.After.Services().Len(),
			actions(real), now.Services().Len())
	}
	for svc := range now.Services().All() {
		previewed, ok := dry.After.Service(svc.Key)
		if !ok || fmt.Sprint(previewed.ClusterVIPs, previewed.Ports, previewed.Resolution) != fmt.Sprint(svc.ClusterVIPs,
			svc.Ports, svc.Resolution) {
			t.Errorf("%s was foreseen as %+v and is %+v", svc.Key, previewed, svc)
		}
	}
}

func TestFindingsOfADryRun(t *testing.T) {
	w := newFixture(t)
	w.must(external("api.example.com"))
	second := strings.Replace(external("api.example.com"), "name: api,", "name: rival,", 1)
	second = strings.Replace(second, "STATIC", "DNS", 1)
	r := w.must(second, dryRun)
	if len(r.Findings) != 1 || r.Findings[0].Key.Name != "rival" {
		t.Errorf("findings: %+v", r.Findings)
	}
}

func TestDeleteIsAllOrNothing(t *testing.T) {
	w := newFixture(t)
	w.must(route("a", "v1") + route("b", "v1"))
	del := func(keys ...federation.ObjectKey) apply.Result {
		r, err := w.engine.Delete(t.Context(), apply.Deletion{Objects: keys})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := del(routeKey("a"), routeKey("absent")); codes(r) != "NOT_FOUND " || w.views.Latest().State.Len() != 2 {
		t.Errorf("%s; %d objects are left", codes(r), w.views.Latest().State.Len())
	}
	if r := del(routeKey("a"), routeKey("a")); actions(r) != "DELETE a" || r.Revision != 2 {
		t.Errorf("%s, %s", actions(r), codes(r))
	}
	if r := del(); codes(r) != "NOTHING_TO_DO objects" {
		t.Errorf("nothing named: %s", codes(r))
	}
}

func TestRollbackIsOneNewRevision(t *testing.T) {
	w := newFixture(t)
	w.must(route("a", "v1") + route("b", "v1") + external("api.example.com"))
	vips := fmt.Sprint(w.vips("api.example.com"))
	w.must(route("a", "v2") + route("c", "v1"))
	if _, err := w.engine.Delete(t.Context(), apply.Deletion{Objects: []federation.ObjectKey{routeKey("b")}}); err != nil {
		t.Fatal(err)
	}
	r, err := w.engine.Rollback(t.Context(), apply.Rollback{To: 1})
	if err != nil || actions(r) != "UPDATE a; CREATE b; DELETE c" || r.Revision != 4 {
		t.Fatalf("%v: revision %d: %s %s", err, r.Revision, actions(r), codes(r))
	}
	if got := fmt.Sprint(w.vips("api.example.com")); got != vips {
		t.Errorf("the automatic VIPs were %s and are %s", vips, got)
	}
	records, err := w.store.Records(t.Context(), 0, 1)
	if err != nil || records[0].Message != "rollback to revision 1" {
		t.Errorf("history says %+v, %v", records, err)
	}
	if again, err := w.engine.Rollback(t.Context(), apply.Rollback{To: 1}); err != nil || len(again.Changes) != 0 || again.Revision != 4 {
		t.Errorf("once more: %s at %d, %v", actions(again), again.Revision, err)
	}
	for _, to := range []int64{99, 0} { // 0: no configuration at all was never applied
		if r, err := w.engine.Rollback(t.Context(), apply.Rollback{To: to}); err != nil || codes(r) != "UNKNOWN_REVISION to" {
			t.Errorf("to revision %d, which is not there: %s, %v", to, codes(r), err)
		}
	}
}

func (w *fixture) vips(host federation.Hostname) any {
	svc, _ := w.snapshots.Latest().Service(federation.ServiceKey{Hostname: host, Namespace: "shop"})
	return svc.ClusterVIPs
}

func TestUnavailableStoreIsSaid(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"))
	w.store.Fail(errors.New("gone fishing"))
	if r := w.apply(route("web", "v2")); codes(r) != "UNAVAILABLE " {
		t.Errorf("%s", codes(r))
	}
	if _, ok := w.snapshots.Latest().Object(routeKey("web")); !ok {
		t.Error("reads do not go on")
	}
	w.store.Fail(nil)
	w.must(route("web", "v2"))
}

// Sixteen writers count up in one object; nothing is lost (promise P10).
func TestRacingAppliesLoseNothing(t *testing.T) {
	w := newFixture(t)
	w.must(strings.Replace(route("count", "v0"), "namespace: shop", `namespace: shop, labels: {count: "0"}`, 1))
	const writers, each = 16, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				for w.increment(t.Context()) {
				}
			}
		})
	}
	all.Wait()
	o, _ := w.snapshots.Latest().Object(routeKey("count"))
	if o.Labels["count"] != fmt.Sprint(writers*each) || w.views.Latest().Revision() != 1+writers*each {
		t.Errorf("counted to %s at revision %d, want %d", o.Labels["count"], w.views.Latest().Revision(), writers*each)
	}
}

// increment adds one, and reports whether somebody else was faster.
func (w *fixture) increment(ctx context.Context) (again bool) {
	o, _ := w.snapshots.Latest().Object(routeKey("count"))
	var n int
	_, _ = fmt.Sscan(o.Labels["count"], &n)
	text := strings.Replace(route("count", "v0"), "namespace: shop", fmt.Sprintf(`namespace: shop, labels: {count: "%d"}`, n+1), 1)
	r, err := w.engine.Apply(ctx, request(text, func(r *apply.Request) {
		r.ExpectedRevisions = map[federation.ObjectKey]int64{routeKey("count"): o.Revision}
	}))
	if err != nil {
		w.t.Error(err)
		return false
	}
	return len(r.Errors) > 0
}

// A file that is read only is not written to, and not hidden in silence.
func TestObjectsOfReadOnlySources(t *testing.T) {
	files := newFixture(t)
	files.must(route("web", "v1"))
	w := newFixture(t, config.Named{Name: "FILE", Source: files.store})
	r, err := w.engine.Delete(t.Context(), apply.Deletion{Objects: []federation.ObjectKey{routeKey("web")}})
	if err != nil || codes(r) != "READ_ONLY " || !strings.Contains(r.Errors[0].Message, "FILE") {
		t.Errorf("deleting: %+v, %v", r.Errors, err)
	}
	hidden := func(r apply.Result) (said []string) {
		for _, f := range r.Findings {
			if f.Code == "HIDDEN_BY" && f.Key == routeKey("web") {
				said = append(said, f.Message)
			}
		}
		return said
	}
	const want = "the object of FILE is hidden by the one of ETCD; remove one of them"
	dry, err := w.engine.Apply(t.Context(), request(route("web", "v2"), func(r *apply.Request) { r.DryRun = true }))
	if said := hidden(dry); err != nil || len(said) != 1 || said[0] != want {
		t.Errorf("a dry run that hides the object of a file has %q, %v", said, err)
	}
	if r := w.must(route("web", "v2")); actions(r) != "CREATE web" || len(hidden(r)) != 1 {
		t.Errorf("applying over it: %s, %q", actions(r), hidden(r))
	}
}

func TestHistoryOfAnObject(t *testing.T) {
	w := newFixture(t)
	by := func(who, why string) func(*apply.Request) {
		return func(r *apply.Request) { r.Author, r.Message = who, why }
	}
	w.must(route("web", "v1"), by("ann", "first"))
	w.must(route("other", "v1"), by("bob", "unrelated"))
	w.must(route("web", "v2"), by("bob", "second"))
	history, err := w.engine.History(t.Context(), routeKey("web"))
	found := history.Steps
	if err != nil || len(found) != 2 || found[0].Author != "bob" || found[0].Revision != 3 || found[0].Action != config.Updated ||
		found[1].Message != "first" || found[1].Manager != apply.DefaultManager {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestRegisteredWorkloadGoesUnlessItIsRenewed(t *testing.T) {
	w := newFixture(t)
	entry := []byte(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm-1, namespace: shop}
spec: {address: 192.0.2.7, labels: {app: web}}`)
	key := federation.WorkloadKey{Namespace: "shop", Name: "vm-1"}
	there := func() bool {
		_, ok := w.snapshots.Latest().Workload(federation.ShardKey{Cluster: "hub", Provider: federation.External}, key)
		return ok
	}
	if expires, problems, err := w.engine.Register(t.Context(), entry, apply.MinTTL); err != nil || len(problems) > 0 || expires.IsZero() {
		t.Fatalf("%v, %+v, %v", expires, problems, err)
	}
	for !there() {
		<-w.snapshots.Latest().Superseded()
	}
	object := federation.ObjectKey{Group: "networking.istio.io", Kind: "WorkloadEntry", Namespace: "shop", Name: "vm-1"}
	if _, err := w.store.Renew(t.Context(), object); err != nil {
		t.Error(err)
	}
	if err := w.store.Release(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for there() {
		<-w.snapshots.Latest().Superseded()
	}
	refused := func(want apply.Code, entry []byte, ttl time.Duration) {
		t.Helper()
		if _, problems, err := w.engine.Register(t.Context(), entry, ttl); err != nil || len(problems) == 0 || problems[0].Code != want {
			t.Errorf("want %s: %+v, %v", want, problems, err)
		}
	}
	refused("INVALID_TTL", entry, 1)
	refused("INVALID_REQUEST", []byte(route("web", "v1")), apply.MinTTL)
	refused("UNKNOWN_FIELD", []byte(strings.Replace(string(entry), "address", "where", 1)), apply.MinTTL)
	for _, address := range []string{"", "a b", "192.0.2.300"} {
		code := apply.Code("INVALID")
		if address == "" {
			code = "REQUIRED"
		}
		refused(code, []byte(strings.Replace(string(entry), "192.0.2.7", fmt.Sprintf("%q", address), 1)), apply.MinTTL)
	}
	w.must(string(entry))
	refused(apply.Conflict, entry, apply.MinTTL)
}
