package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// shortHistory keeps few records and looks often what may be removed.
func shortHistory() etcd.ConfigOptions {
	o := eager()
	o.Retain, o.CheckpointRecords = 4, 2
	return o
}

// oldestRecord is the oldest revision that the store still has a record of.
func oldestRecord(t *testing.T, c *etcd.Config) int64 {
	t.Helper()
	records, err := c.Records(t.Context(), 0, 1000)
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	return records[len(records)-1].Revision
}

func wantHistory(t *testing.T, c *etcd.Config, name string, compacted bool, want string) {
	t.Helper()
	found, err := c.History(t.Context(), configtest.Key(name))
	if got := configtest.Steps(found); err != nil || got != want || found.Compacted != compacted {
		t.Errorf("the history of %s is %q, compacted %v, %v; want %q, %v", name, got, found.Compacted, err, want, compacted)
	}
}

// TestR40ObjectKeepsItsHistoryWhateverTheLogKeeps: two hubs and one that starts
// later say the same of every object, also of those whose records are removed.
func TestR40ObjectKeepsItsHistoryWhateverTheLogKeeps(t *testing.T) {
	const changes = 40
	s := opened(t, etcd.Options{})
	hubs := []*etcd.Config{s.Config(shortHistory()), s.Config(shortHistory())}
	recorder := make([]*configtest.Recorder, len(hubs))
	for i, c := range hubs {
		recorder[i], _ = configtest.Listen(t, c)
		recorder[i].WaitRevision(t, 0)
	}
	base := configtest.Must(t, hubs[0], configtest.Set(0, configtest.Object("old", 1), configtest.Object("gone", 1)))
	base = configtest.Must(t, hubs[0], configtest.Gone(base, "gone"))
	var newest []string
	for i := range changes {
		c := configtest.Set(base, configtest.Object("busy", i))
		c.Author = fmt.Sprint("hub-", i%2)
		recorder[i%2].WaitRevision(t, base)
		base = configtest.Must(t, hubs[i%2], c)
		newest = append([]string{fmt.Sprintf("%d UPDATE %s set", base, c.Author)}, newest...)
	}
	waitUntil(t, "old records to be removed", func() bool { return oldestRecord(t, hubs[0]) > 10 })
	late := s.Config(shortHistory())
	seen, _ := configtest.Listen(t, late)
	for _, h := range append(recorder, seen) {
		h.WaitRevision(t, base)
	}
	for _, c := range append(hubs, late) {
		wantHistory(t, c, "old", false, "1 CREATE ann set")
		wantHistory(t, c, "busy", true, strings.Join(newest[:10], ", "))
		wantHistory(t, c, "gone", false, "")
	}
}

// TestR40HistoryIsExactAfterCrashes: a writer that ends between any two steps of a
// commit leaves a history that says what the records say.
func TestR40HistoryIsExactAfterCrashes(t *testing.T) {
	s := opened(t, etcd.Options{})
	base := configtest.Must(t, s.Config(patient()), configtest.Set(0, configtest.Object("a", "before")))
	crash := errors.New("the process ends")
	for i, step := range []string{"stage", "staged", "publish", "published"} {
		c := s.Config(patient())
		c.StopAt(step, 1, crash)
		if _, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("a", fmt.Sprint("crash ", i)))); err == nil {
			t.Fatalf("the commit is not cut off at %s", step)
		}
		next := s.Config(patient())
		records, err := next.Records(t.Context(), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		base = configtest.Must(t, next, configtest.Set(records[0].Revision, configtest.Object("a", i)))
		all, err := next.Records(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, r := range all {
			want = append(want, fmt.Sprintf("%d %s %s %s", r.Revision, r.Changes[0].Action, r.Author, r.Message))
		}
		wantHistory(t, next, "a", false, strings.Join(want, ", "))
		wantHistory(t, s.Config(patient()), "a", false, strings.Join(want, ", "))
	}
}

// ofThisTest marks the contexts of calls whose reads are counted: a running store
// also reads on its own account.
type ofThisTest struct{}

// countedReads counts what marked calls ask of etcd.
type countedReads struct {
	clientv3.KV
	n atomic.Int64
}

func (c *countedReads) count(ctx context.Context) {
	if ctx.Value(ofThisTest{}) != nil {
		c.n.Add(1)
	}
}

func (c *countedReads) Get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.count(ctx)
	return c.KV.Get(ctx, key, o...)
}

func (c *countedReads) Txn(ctx context.Context) clientv3.Txn {
	c.count(ctx)
	return c.KV.Txn(ctx)
}

// TestR40HistoriesOfAPageAreNotReadFromEtcd: they are answered from memory, however
// long ago the objects changed.
func TestR40HistoriesOfAPageAreNotReadFromEtcd(t *testing.T) {
	const page = 50
	s := opened(t, etcd.Options{})
	counted := &countedReads{KV: s.Client().KV}
	s.Client().KV = counted
	c := s.Config(etcd.ConfigOptions{Probe: time.Hour, Sweep: time.Hour})
	recorder, _ := configtest.Listen(t, c)
	var all []*config.Object
	for i := range page {
		all = append(all, configtest.Object(fmt.Sprint("o-", i), i))
	}
	recorder.WaitRevision(t, 0)
	base := configtest.Must(t, c, configtest.Set(0, all...))
	for i := range 20 {
		base = configtest.Must(t, c, configtest.Set(base, configtest.Object("busy", i)))
	}
	recorder.WaitRevision(t, base)
	ctx := context.WithValue(t.Context(), ofThisTest{}, true)
	if _, err := c.Records(ctx, 0, 1); err != nil || counted.n.Load() == 0 {
		t.Fatalf("the reads of a call are not counted: %v", err)
	}
	before := counted.n.Load()
	for i := range page {
		found, err := c.History(ctx, configtest.Key(fmt.Sprint("o-", i)))
		if got := configtest.Steps(found); err != nil || got != "1 CREATE ann set" {
			t.Errorf("the history of o-%d is %q, %v", i, got, err)
		}
	}
	if n := counted.n.Load() - before; n > 0 {
		t.Errorf("etcd was asked %d times for the histories of %d objects", n, page)
	}
}

// TestR40StoreOfAnEarlierVersionKeepsItsHistory: testdata holds all keys of a store
// that was written by the last version without histories of objects. Its log has
// the revisions 7 to 14.
func TestR40StoreOfAnEarlierVersionKeepsItsHistory(t *testing.T) {
	outside := testbed.StartEtcd(t, testbed.EtcdOptions{})
	fill(t, outside.URL, filepath.Join("testdata", "without-object-history.json"))
	s := opened(t, etcd.Options{Endpoints: []string{outside.URL}})
	check := func(c *etcd.Config) {
		t.Helper()
		wantHistory(t, c, "old", true, "1   ")
		wantHistory(t, c, "churn", true, "10 UPDATE bob change 10, 9 UPDATE bob change 9, 8 UPDATE bob change 8, 7 UPDATE bob change 7")
		wantHistory(t, c, "late", false, "12 UPDATE ann change 12, 11 CREATE ann change 11")
		wantHistory(t, c, "gone", false, "14 DELETE ann change 14, 13 CREATE ann change 13")
	}
	c := s.Config(patient())
	check(c)
	o := shortHistory()
	o.Retain = 20
	running := s.Config(o)
	recorder, _ := configtest.Listen(t, running)
	recorder.WaitRevision(t, 14)
	base := int64(14)
	for i := range 30 { // until none of the old records is left
		base = configtest.Must(t, running, configtest.Set(base, configtest.Object("busy", i)))
		recorder.WaitRevision(t, base)
	}
	waitUntil(t, "the records of the earlier version to be removed", func() bool { return oldestRecord(t, running) > 14 })
	again := s.Config(o)
	seen, _ := configtest.Listen(t, again)
	seen.WaitRevision(t, base)
	wantHistory(t, again, "old", true, "1   ")
	wantHistory(t, again, "churn", true, "10 UPDATE bob change 10, 9 UPDATE bob change 9, 8 UPDATE bob change 8, 7 UPDATE bob change 7")
	wantHistory(t, again, "late", false, "12 UPDATE ann change 12, 11 CREATE ann change 11")
}

// fill writes the keys of a file to etcd.
func fill(t *testing.T, endpoint, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string][]byte
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for key, value := range keys {
		if _, err := client.Put(t.Context(), key, string(value)); err != nil {
			t.Fatal(err)
		}
	}
}
