package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// partialAnswer is an answer of which fields may be missing.
type partialAnswer struct {
	Data struct {
		Clusters, Services *struct{ TotalCount int }
		ConfigObjects      *struct {
			Nodes []struct {
				Name    string
				History *struct{ TotalCount int }
			}
		}
		History *struct{ Nodes []struct{ Revision string } }
		Then    *struct{ Name string }
	}
	Errors []struct {
		Path       []any
		Extensions struct{ Code string }
	}
}

func (h *hubUnderTest) partial(query string) (a partialAnswer, err error) {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return a, err
	}
	answer, err := h.client.Post("http://localhost/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	defer answer.Body.Close()
	return a, json.NewDecoder(answer.Body).Decode(&a)
}

// TestR41FrozenStoreTakesNothingButItsOwnFields: a query that asks for what is in
// memory and for what is in the store gets the former, and an error at the latter. It
// does not wait for the store's time limit, 10 s for each of the many queries.
func TestR41FrozenStoreTakesNothingButItsOwnFields(t *testing.T) {
	const (
		many  = 20
		limit = 10 * time.Second // of a read of the store
		query = `{ clusters {totalCount} services {totalCount} history(first: 1) {nodes {revision}}
			configObjects(filter: {namespace: "shop"}) {nodes {name history {totalCount}}}
			then: configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "web", at: "1") {name} }`
	)
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	h := startHub(t, "--etcd-endpoints", store.URL)
	for i := range 2 {
		if made, err := h.applyEntry("web", i+1); err != nil || len(made.Apply.UserErrors) > 0 {
			t.Fatalf("%+v, %v", made, err)
		}
	}
	whole, err := h.partial(query)
	if err != nil || len(whole.Errors) > 0 || whole.Data.History == nil || whole.Data.Then == nil {
		t.Fatalf("with the store: %+v, %v", whole, err)
	}
	want := whole.Data
	want.History, want.Then = nil, nil
	store.Pause()
	defer store.Resume()
	clock, began := testbed.StartClock(t), time.Now()
	for range many {
		got, err := h.partial(query)
		if err != nil || !reflect.DeepEqual(got.Data, want) {
			t.Fatalf("without the store: %+v, %v; want %+v", got, err, want)
		}
		failed := map[any]string{}
		for _, e := range got.Errors {
			failed[e.Path[0]] = e.Extensions.Code
		}
		if len(got.Errors) != 2 || failed["history"] != "UNAVAILABLE" || failed["then"] != "UNAVAILABLE" {
			t.Fatalf("the errors are %+v", got.Errors)
		}
	}
	if took := clock.Since(began); took > limit {
		t.Errorf("%d queries took %v, longer than one read of the store may take", many, took)
	}
	store.Resume()
	h.await(t, "the whole answer", func() error {
		var all struct {
			History *struct{ Nodes []struct{ Revision string } }
		}
		return h.query(query, &all)
	})
}
