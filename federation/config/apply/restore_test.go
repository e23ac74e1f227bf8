package apply_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// commit writes an object as another version of isthmus would have.
func (w *fixture) commit(key federation.ObjectKey, apiVersion, manifest string) int64 {
	w.t.Helper()
	revision, err := w.log.Commit(w.t.Context(), config.Commit{Base: w.views.Latest().Revision(), Changes: []config.Change{
		{Key: key, Object: &config.Object{Key: key, APIVersion: apiVersion, Manifest: []byte(manifest)}},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.views.WaitFor(w.t.Context(), revision); err != nil {
		w.t.Fatal(err)
	}
	return revision
}

func (w *fixture) rollback(to int64) apply.Result {
	w.t.Helper()
	r, err := w.engine.Rollback(w.t.Context(), apply.Rollback{To: to})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func stored(name, version, spec string) string {
	return `{"apiVersion":"networking.istio.io/` + version + `","kind":"VirtualService","metadata":{"name":"` + name +
		`","namespace":"shop","uid":"u-` + name + `","generation":3},"spec":` + spec + `}`
}

func TestRollbackLeavesObjectsOfUnknownKindsAlone(t *testing.T) {
	w := newFixture(t)
	gone := federation.ObjectKey{Group: "old.example.com", Kind: "Gone", Namespace: "shop", Name: "x"}
	w.commit(gone, "old.example.com/v1", `{"apiVersion":"old.example.com/v1","kind":"Gone","metadata":{"name":"x","namespace":"shop"}}`)
	w.must(route("web", "v1"))
	w.must(route("web", "v2"))
	r := w.rollback(2)
	if codes(r) != "" || actions(r) != "UPDATE web" || len(r.Findings) == 0 || r.Findings[0].Code != "UNKNOWN_KIND" ||
		r.Findings[0].Key != gone {
		t.Errorf("%s %s, %+v", codes(r), actions(r), r.Findings)
	}
	objects, err := w.store.At(t.Context(), r.Revision)
	if err != nil || len(objects) != 2 {
		t.Errorf("%d objects are stored, %v", len(objects), err)
	}
}

func TestRollbackAcrossSchemaVersions(t *testing.T) {
	w := newFixture(t)
	old := w.commit(routeKey("web"), "networking.istio.io/v1beta1", stored("web", "v1beta1", `{"hosts":["web"]}`))
	w.must(strings.Replace(route("web", "v1"), "spec:", "spec:\n  exportTo: [.]", 1), force)
	r := w.rollback(old)
	if codes(r) != "" || actions(r) != "UPDATE web" {
		t.Fatalf("%s %s", codes(r), actions(r))
	}
	o := r.Changes[0].Object
	if o.APIVersion != "networking.istio.io/v1" || !strings.Contains(string(o.Manifest), `"apiVersion":"networking.istio.io/v1"`) ||
		!strings.Contains(string(o.Manifest), `"uid":"u-web"`) || strings.Contains(string(o.Manifest), "exportTo") {
		t.Errorf("it is stored as %s: %s", o.APIVersion, o.Manifest)
	}
	// What the present schema does not take is not brought back, and nothing is.
	invalid := w.commit(routeKey("web"), "networking.istio.io/v1", stored("web", "v1", `{"hosts":["web"],"hsots":["web"]}`))
	w.remove(apply.Origin{}, "web")
	w.must(route("web", "v1") + route("other", "v1"))
	if r := w.rollback(invalid); codes(r) != "UNKNOWN_FIELD spec.hsots" || r.Errors[0].Key != routeKey("web") ||
		w.views.Latest().State.Len() != 2 {
		t.Errorf("%s %s: %+v", codes(r), actions(r), r.Errors)
	}
}

// The store's advice about a value that it cannot use is right: apply or delete the
// object again.
func TestUnusableValuesAreCuredByApplyAndByDelete(t *testing.T) {
	s := store(t, filepath.Join(t.TempDir(), "etcd"))
	o := etcd.ConfigOptions{Kinds: kinds(t), Probe: 20 * time.Millisecond, Patience: configtest.Patience}
	first := join(t, s.Config(o))
	for _, name := range []string{"applied", "deleted"} {
		first.must(route(name, "v1"))
		damage(t, s)
	}
	w := join(t, s.Config(o))
	w.troubled("CHECKSUM CHECKSUM")
	if r := w.remove(apply.Origin{}, "deleted"); codes(r) != "" || actions(r) != "DELETE deleted" {
		t.Errorf("deleting: %s %s", codes(r), actions(r))
	}
	w.troubled("CHECKSUM")
	w.must(route("applied", "v1"))
	w.troubled("")
	// The hub that has the value still must write it, too.
	w.must(route("applied", "v2"))
	damage(t, s)
	again := join(t, s.Config(o))
	again.troubled("CHECKSUM")
	if r := again.must(route("applied", "v1")); actions(r) != "UPDATE applied" {
		t.Errorf("what is in force is written again: %s", actions(r))
	}
	again.troubled("")
}

// damage flips a bit of the newest value.
func damage(t *testing.T, s *etcd.Store) {
	t.Helper()
	answer, err := s.Client().Get(context.Background(), "/isthmus/v1/config/tx/", clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		if strings.Contains(string(kv.Key), "/value/") {
			kv.Value[len(kv.Value)-9] ^= 4
			if _, err := s.Client().Put(context.Background(), string(kv.Key), string(kv.Value)); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("there is no value")
}

// troubled waits until the store has just these troubles.
func (w *fixture) troubled(want string) {
	w.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		v := w.views.Latest()
		var all []string
		for _, p := range v.Sources[0].Trouble {
			all = append(all, p.Code)
		}
		if strings.Join(all, " ") == want {
			return
		}
		select {
		case <-v.Superseded():
		case <-limit.C:
			w.t.Fatalf("the troubles are %+v, want %q", v.Sources[0].Trouble, want)
		}
	}
}

func TestRegistrationStaysWhoItIs(t *testing.T) {
	w := newFixture(t)
	entry := func(address string) []byte {
		return []byte(`{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"name":"vm-1","namespace":"shop"},"spec":{"address":"` + address + `"}}`)
	}
	object := federation.ObjectKey{Group: "networking.istio.io", Kind: "WorkloadEntry", Namespace: "shop", Name: "vm-1"}
	uid := func(address string) string {
		t.Helper()
		if _, problems, err := w.engine.Register(t.Context(), entry(address), apply.MaxTTL); err != nil || len(problems) > 0 {
			t.Fatalf("%+v, %v", problems, err)
		}
		for {
			v := w.views.Latest()
			if o, ok := v.State.Object(object); ok && strings.Contains(string(o.Manifest), address) {
				_, after, _ := strings.Cut(string(o.Manifest), `"uid":"`)
				return after[:36]
			}
			<-v.Superseded()
		}
	}
	first := uid("192.0.2.1")
	if second := uid("192.0.2.2"); second != first {
		t.Errorf("registered again it is %s and not %s", second, first)
	}
	r, err := w.engine.Delete(t.Context(), apply.Deletion{Objects: []federation.ObjectKey{object}})
	if err != nil || codes(r) != "READ_ONLY " || !strings.Contains(r.Errors[0].Message, "registered") {
		t.Errorf("deleting it: %+v, %v", r.Errors, err)
	}
	if _, problems, err := w.engine.Register(t.Context(), entry("192.0.2.3"), apply.MaxTTL+1); err != nil || len(problems) != 1 ||
		problems[0].Code != apply.InvalidTTL {
		t.Errorf("for longer than allowed: %+v, %v", problems, err)
	}
}
