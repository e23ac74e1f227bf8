package apply_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config/apply"
)

// largest is how many documents the largest request has; the limit is 12,000.
var largest = flag.Int("documents", 1_000, "documents of the largest request that is carried out")

func files(texts ...string) func(*apply.Request) {
	return func(r *apply.Request) {
		r.Manifests = nil
		for i, text := range texts {
			r.Manifests = append(r.Manifests, apply.File{Name: fmt.Sprintf("%d.yaml", i), Data: text})
		}
	}
}

func TestObjectInTwoFilesIsRefusedWithBothPlaces(t *testing.T) {
	w := newFixture(t)
	r := w.apply("", files(route("a", "v1"), route("b", "v1")+route("a", "v2")))
	if codes(r) != "DUPLICATE_OBJECT metadata.name" || r.Errors[0].Place.File != "1.yaml" ||
		!strings.Contains(r.Errors[0].Message, "0.yaml:") {
		t.Errorf("%+v", r.Errors)
	}
	if r := w.must("", files(route("a", "v1"), route("b", "v1"))); actions(r) != "CREATE a; CREATE b" || r.Revision != 1 {
		t.Errorf("two files: %s at %d", actions(r), r.Revision)
	}
}

func TestNamesOfAnotherTypeAreRefusedAndNotGuessed(t *testing.T) {
	w := newFixture(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"namespace": {"namespace: shop", "namespace: 123", "TYPE metadata.namespace"},
		"name":      {"name: web", "name: 7", "TYPE metadata.name"},
		"list":      {"namespace: shop", "namespace: [shop]", "TYPE metadata.namespace"},
		"metadata":  {"{name: web, namespace: shop}", "web", "TYPE metadata"},
		"labels":    {"namespace: shop", "namespace: shop, labels: none", "TYPE metadata.labels"},
	} {
		r := w.apply(strings.Replace(route("web", "v1"), c.old, c.new, 1), func(r *apply.Request) { r.Set = "all" })
		if codes(r) != c.want {
			t.Errorf("%s: %q, want %q: %s", name, codes(r), c.want, actions(r))
		}
	}
	if n := w.views.Latest().State.Len(); n != 0 {
		t.Errorf("%d objects were written", n)
	}
}

func TestRequestIsCheckedOnceNotPerManifest(t *testing.T) {
	w := newFixture(t)
	set := func(name string) func(*apply.Request) { return func(r *apply.Request) { r.Set = name } }
	for name, c := range map[string]struct {
		change func(*apply.Request)
		want   string
	}{
		"longest manager":     {manager(strings.Repeat("m", 128)), ""},
		"manager too long":    {manager(strings.Repeat("m", 129)), "INVALID_REQUEST fieldManager"},
		"manager with a tab":  {manager("a\tb"), "INVALID_REQUEST fieldManager"},
		"manager of no UTF-8": {manager("a\xff"), "INVALID_REQUEST fieldManager"},
		"manager in Greek":    {manager("ομάδα"), ""},
		"set with a slash":    {set("a/b"), "INVALID_REQUEST set"},
		"set too long":        {set(strings.Repeat("s", 64)), "INVALID_REQUEST set"},
	} {
		if r := w.apply(route("a", "v1")+route("b", "v1"), c.change, dryRun); codes(r) != c.want {
			t.Errorf("%s: %q, want %q", name, codes(r), c.want)
		}
	}
}

// Managers differ by case, as in Kubernetes.
func TestManagersOfDifferentCaseAreDifferent(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"), manager("Team"))
	if r := w.apply(route("web", "v2"), manager("team")); codes(r) != "CONFLICT .spec.http" || r.Errors[0].Manager != "Team" {
		t.Errorf("%s", codes(r))
	}
}

func TestLongNotesAreRefusedByTheirLimit(t *testing.T) {
	w := newFixture(t)
	long := strings.Repeat("x", 65<<10)
	for field, change := range map[string]func(*apply.Request){
		"message": func(r *apply.Request) { r.Message = long }, "": func(r *apply.Request) { r.Author = long },
		"ticket": func(r *apply.Request) { r.Ticket = long }, "idempotencyKey": key(long),
	} {
		r := w.apply(route("web", "v1"), change)
		if codes(r) != "STORE_REFUSED "+field || !strings.Contains(r.Errors[0].Message, "note size") || len(r.Errors[0].Message) > 300 {
			t.Errorf("%s: %.300v", field, r.Errors)
		}
	}
}

func TestVeryManyErrorsAreBounded(t *testing.T) {
	w := newFixture(t)
	var all strings.Builder
	for i := range 3000 {
		all.WriteString(strings.Replace(route(fmt.Sprint("r", i), "v1"), "hosts:", "hsots:", 1))
	}
	r := w.apply(all.String())
	last := r.Errors[len(r.Errors)-1]
	if len(r.Errors) != 1000 || last.Code != "TOO_MANY_PROBLEMS" || !strings.Contains(last.Message, " more problems") {
		t.Errorf("%d errors, the last is %+v", len(r.Errors), last)
	}
}

// TestR104ObjectsAreNotMergedAfterTheRequestEnded: the rest of a request whose client left, or whose time is over, is
// not worked on.
func TestR104ObjectsAreNotMergedAfterTheRequestEnded(t *testing.T) {
	w := newFixture(t)
	var text strings.Builder
	for i := range 500 {
		text.WriteString(route(fmt.Sprint("r", i), "v1"))
	}
	most := int32(runtime.GOMAXPROCS(0)) // each worker may be at one
	for name, manifests := range map[string]string{"valid": text.String(), "with one that is not": text.String() + "---\n[]\n"} {
		for _, dry := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			var merged, late atomic.Int32
			var ended atomic.Bool
			o := w.engine.Options
			o.NewUID = func() string {
				n := merged.Add(1)
				if ended.Load() {
					late.Add(1)
				}
				if n == 5 {
					cancel()
					ended.Store(true)
				}
				return fmt.Sprint("uid-", n)
			}
			r, err := apply.New(o).Apply(ctx, request(manifests, func(r *apply.Request) { r.DryRun = dry }))
			if n := late.Load(); !errors.Is(err, context.Canceled) || n > most {
				t.Errorf("%s, dry run %t: after the end, %d objects are merged, and at most %d are expected; %v, errors %.200s",
					name, dry, n, most, err, codes(r))
			}
			cancel()
		}
	}
}

// TestR104OneObjectHasAsManyErrorsAsAnAnswerLists: the unknown fields of one object, each with its place.
func TestR104OneObjectHasAsManyErrorsAsAnAnswerLists(t *testing.T) {
	w := newFixture(t)
	var fields strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&fields, "  k%d: v\n", i)
	}
	r := w.apply("apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec:\n"+fields.String(), dryRun)
	last := r.Errors[len(r.Errors)-1]
	if len(r.Errors) != 1000 || last.Code != "TOO_MANY_PROBLEMS" || !strings.HasPrefix(last.Message, "1501 more problems") {
		t.Errorf("%d errors, the last is %+v", len(r.Errors), last)
	}
	for _, e := range r.Errors[:999] {
		var n int
		if _, err := fmt.Sscanf(e.Field, "spec.k%d", &n); err != nil || e.Place.Line != 5+n || e.Place.Column != 3 {
			t.Errorf("%s is reported at %v", e.Field, e.Place)
		}
	}
}

func TestResourceVersionIsAPrecondition(t *testing.T) {
	w := newFixture(t)
	compare := func(r *apply.Request) { r.CompareResourceVersion = true }
	at := func(name, version string) string {
		return strings.Replace(route(name, "v2"), "namespace: shop", `namespace: shop, resourceVersion: "`+version+`"`, 1)
	}
	w.must(route("web", "v1"))
	w.must(route("other", "v1"))
	for _, c := range []struct{ manifest, want string }{
		{at("web", "2"), "PRECONDITION_FAILED metadata.resourceVersion"},
		{at("web", "x"), "PRECONDITION_FAILED metadata.resourceVersion"},
		{at("new", "1"), "PRECONDITION_FAILED metadata.resourceVersion"},
		{at("web", "1"), ""},
		{at("web", "1"), "PRECONDITION_FAILED metadata.resourceVersion"},
		{at("web", ""), ""},
	} {
		if r := w.apply(c.manifest, compare); codes(r) != c.want {
			t.Errorf("%s: %q, want %q", c.manifest, codes(r), c.want)
		}
	}
	if r := w.apply(at("web", "812")); codes(r) != "" {
		t.Errorf("the version is compared although nobody asked: %q", codes(r))
	}
	records, err := w.store.Records(t.Context(), 0, 1)
	if err != nil || strings.Contains(string(records[0].Changes[0].Object.Manifest), "resourceVersion") {
		t.Errorf("it is stored with a version: %v", err)
	}
}

// The largest request is carried out in bounded time and memory, whether it comes
// as one file or as many; one more document is refused by the limit's name.
func TestLargestRequestIsBounded(t *testing.T) {
	w := newFixture(t)
	var text strings.Builder
	for i := range *largest {
		text.WriteString(strings.Replace(route(fmt.Sprint("r", i), "v1"), "namespace: shop",
			"namespace: shop, annotations: {filling: "+strings.Repeat("x", 1000)+"}", 1))
	}
	var small strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&small, "{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: s%d}}\n---\n", i)
	}
	all := text.String()
	for name, c := range map[string]struct {
		change func(*apply.Request)
		want   string
	}{
		"documents":          {files(small.String() + "{a: 1}"), "TOO_MANY_DOCUMENTS "},
		"documents of files": {files(small.String(), route("more", "v1")), "TOO_MANY_DOCUMENTS "},
		"bytes of files":     {files(route("a", "v1"), "#"+strings.Repeat(" ", 16<<20-100)), "TOO_LARGE "},
	} {
		if r := w.apply("", c.change, dryRun); !strings.HasSuffix(codes(r), c.want) || len(r.Errors) > 1000 {
			t.Errorf("%s: %.200s, want %s", name, codes(r), c.want)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	r := w.apply(all)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if len(r.Errors) > 0 || len(r.Changes) != *largest {
		t.Fatalf("%d changes, %.500v", len(r.Changes), r.Errors)
	}
	runtime.GC()
	var held runtime.MemStats
	runtime.ReadMemStats(&held)
	t.Logf("%d documents of %d MiB in %v; %d MiB allocated on the way, %d MiB held", *largest, len(all)>>20, took,
		(after.TotalAlloc-before.TotalAlloc)>>20, (int64(held.HeapAlloc)-int64(before.HeapAlloc))>>20)
	if limit := int64(30 * len(all)); int64(held.HeapAlloc)-int64(before.HeapAlloc) > limit {
		t.Errorf("more than %d bytes are held", limit)
	}
	if took > 3*time.Minute {
		t.Errorf("it took %v", took)
	}
}
