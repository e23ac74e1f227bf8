package etcd_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// document opens a value that isthmus wrote.
func document(t *testing.T, s *etcd.Store, key string) map[string]any {
	t.Helper()
	payload, err := etcd.Payload(get(t, s, key))
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(payload, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, s *etcd.Store, key string, d map[string]any) (hash string) {
	t.Helper()
	payload, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, key, etcd.Seal(payload))
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

func logOf(revision int64) string { return fmt.Sprintf("/isthmus/v1/config/log/%020d", revision) }

// rewrite changes the newest record as somebody would who knows every format.
func rewrite(t *testing.T, s *etcd.Store, revision int64, change func(record map[string]any)) {
	t.Helper()
	entry, head := document(t, s, logOf(revision)), document(t, s, "/isthmus/v1/config/head")
	index := "/isthmus/v1/config/tx/" + entry["Tx"].(string) + "/index/000000"
	record := document(t, s, index)
	change(record)
	entry["Hash"] = write(t, s, index, record)
	head["Hash"] = entry["Hash"]
	write(t, s, logOf(revision), entry)
	write(t, s, "/isthmus/v1/config/head", head)
}

func TestBE4RevisionOfAnObjectIsNotThatOfItsRecord(t *testing.T) {
	for _, own := range []int64{1, 3} {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			s := opened(t, etcd.Options{})
			writer := s.Config(patient())
			configtest.Must(t, writer, configtest.Set(0, configtest.Object("a", 1)))
			configtest.Must(t, writer, configtest.Set(1, configtest.Object("a", 2), configtest.Object("b", 2)))
			rewrite(t, s, 2, func(record map[string]any) {
				record["Entries"].([]any)[0].(map[string]any)["Revision"] = own
			})
			counted := &counts{}
			o := eager()
			o.Meter = counted
			c := s.Config(o)
			recorder, _ := configtest.Listen(t, c)
			seen := recorder.Wait(t, "the report", func(s configtest.Seen) bool { return s.Codes() == "OTHER_REVISION" && len(s.Objects) > 0 })
			if a := seen.Objects[configtest.Key("a")]; a == nil || configtest.Value[int](a) != 1 || len(seen.Objects) != 2 {
				t.Errorf("objects: %v", seen.Objects)
			}
			if p := seen.Problems[0]; !strings.Contains(p.Object, "shop/a") || counted.get(etcd.CountQuarantined) != 1 {
				t.Errorf("%+v, counted %v", p, counted.of)
			}
			// Both are there for an operator to repair it.
			records, err := c.Records(t.Context(), 0, 10)
			if err != nil || len(records) != 2 || configtest.Value[int](records[0].Changes[0].Object) != 2 {
				t.Errorf("the history gives %+v, %v", records, err)
			}
			configtest.Must(t, c, configtest.Set(2, configtest.Object("a", 3)))
			recorder.Wait(t, "the cure", func(s configtest.Seen) bool {
				return s.Codes() == "" && configtest.Value[int](s.Objects[configtest.Key("a")]) == 3
			})
		})
	}
}

// withUID is an object that says who it is.
func withUID(name, uid string) *config.Object {
	o := configtest.Object(name, 1)
	o.Manifest = []byte(strings.Replace(string(o.Manifest), `"metadata":{`, `"metadata":{"uid":"`+uid+`",`, 1))
	return o
}

func TestBE4DuplicateUIDIsReportedAndBothAreReadable(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	configtest.Must(t, c, configtest.Set(0, withUID("a", "u1"), withUID("b", "u1"), withUID("c", "u2")))
	recorder, _ := configtest.Listen(t, c)
	seen := recorder.Wait(t, "the report", func(s configtest.Seen) bool { return s.Codes() == "DUPLICATE_UID" })
	p := seen.Problems[0]
	if len(seen.Objects) != 3 || !strings.Contains(p.Object, "shop/b") || !strings.Contains(p.Message, "shop/a") {
		t.Errorf("%d objects, %+v", len(seen.Objects), p)
	}
	configtest.Must(t, c, configtest.Gone(1, "b"))
	recorder.Wait(t, "its end", func(s configtest.Seen) bool { return s.Codes() == "" && len(s.Objects) == 2 })
}

// taken removes keys, and gives them back when it is called.
func taken(t *testing.T, s *etcd.Store, folder string) (back func()) {
	t.Helper()
	answer, err := s.Client().Delete(context.Background(), folder, clientv3.WithPrefix(), clientv3.WithPrevKV())
	if err != nil || answer.Deleted == 0 {
		t.Fatalf("%s: %d keys, %v", folder, answer.Deleted, err)
	}
	return func() {
		for _, kv := range answer.PrevKvs {
			put(t, s, string(kv.Key), string(kv.Value))
		}
	}
}

func txOf(t *testing.T, s *etcd.Store, revision int64) string {
	return "/isthmus/v1/config/tx/" + document(t, s, logOf(revision))["Tx"].(string)
}

func TestBE5LostRecordIsNeverAppliedByHalf(t *testing.T) {
	t.Parallel()
	s := opened(t, etcd.Options{})
	writer := s.Config(patient())
	configtest.Must(t, writer, counters(0, 1))
	reader := s.Config(eager())
	recorder, _ := configtest.Listen(t, reader)
	recorder.WaitRevision(t, 1)
	var back func()
	writer.Steps(func(name string) { // what a disk may lose with the power
		if name == "publish" {
			for _, key := range keys(t, s, "/isthmus/v1/config/tx/") {
				if strings.HasSuffix(key, "/index/000000") && !strings.HasPrefix(key, txOf(t, s, 1)) {
					back = taken(t, s, strings.TrimSuffix(key, "000000"))
				}
			}
		}
	})
	configtest.Must(t, writer, counters(1, 2))
	seen := recorder.Wait(t, "the report", func(s configtest.Seen) bool { return strings.HasPrefix(s.Codes(), "HISTORY_DAMAGED") })
	if seen.Revision() != 1 || counterOf(seen.Objects[configtest.Key("counter-5")]) != 1 {
		t.Errorf("at revision %d the counter is %d", seen.Revision(), counterOf(seen.Objects[configtest.Key("counter-5")]))
	}
	err := s.Config(patient()).Run(t.Context(), ignored{})
	if err == nil || !strings.Contains(err.Error(), "revision 2") || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a start over the gap gives %v", err)
	}
	back()
	seen = recorder.WaitRevision(t, 2)
	if n := counterOf(seen.Objects[configtest.Key("counter-5")]); n != 2 {
		t.Errorf("repaired, the counter is %d", n)
	}
	recorder.Wait(t, "the end of trouble", func(s configtest.Seen) bool { return s.Codes() == "" })
}

func TestBE5LostValuesConcernTheirObjectsOnly(t *testing.T) {
	s := opened(t, etcd.Options{})
	writer := s.Config(patient())
	configtest.Must(t, writer, configtest.Set(0, configtest.Object("a", 1)))
	configtest.Must(t, writer, configtest.Set(1, configtest.Object("b", 1)))
	taken(t, s, txOf(t, s, 2)+"/value/")
	counted := &counts{}
	o := eager()
	o.Meter = counted
	recorder, _ := configtest.Listen(t, s.Config(o))
	seen := recorder.Wait(t, "the report and the other object",
		func(s configtest.Seen) bool { return s.Codes() == "CHECKSUM" && len(s.Objects) == 1 })
	if !strings.Contains(seen.Problems[0].Object, "shop/b") || counted.get(etcd.CountQuarantined) != 1 {
		t.Errorf("%d objects, %+v, counted %v", len(seen.Objects), seen.Problems, counted.of)
	}
}

// A hub that knows what came after a lost record makes a start possible again.
func TestBE5GapIsBridgedByWhoKnowsWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	s := opened(t, etcd.Options{})
	counted := &counts{}
	o := eager()
	o.Meter = counted
	c := s.Config(o)
	recorder, _ := configtest.Listen(t, c)
	for n := range int64(4) {
		configtest.Must(t, c, counters(n, n+1))
	}
	recorder.WaitRevision(t, 4)
	taken(t, s, txOf(t, s, 2)+"/index/")
	seen := recorder.Wait(t, "the report", func(s configtest.Seen) bool { return s.Codes() == "HISTORY_DAMAGED" })
	if p := seen.Problems[0]; p.Object != "revision 2" || counted.get(etcd.CountMissing) != 1 {
		t.Errorf("%+v, counted %v", p, counted.of)
	}
	waitUntil(t, "a checkpoint", func() bool { return counted.get(etcd.CountCheckpoints) == 1 })
	anew, _ := configtest.Listen(t, s.Config(eager()))
	got := anew.WaitRevision(t, 4)
	if len(got.Objects) != counterCount || counterOf(got.Objects[configtest.Key("counter-0")]) != 4 {
		t.Errorf("%d objects", len(got.Objects))
	}
	// A checkpoint that is lost is passed over; without it there is the gap.
	taken(t, s, "/isthmus/v1/config/checkpoint/")
	if err := s.Config(patient()).Run(t.Context(), ignored{}); err == nil || !strings.Contains(err.Error(), "revision 2") {
		t.Errorf("a start over the gap gives %v", err)
	}
}

// leases is how many registrations TestBE7 makes: 10,000 in a soak run.
var leases = flag.Int("leases", 2000, "how many registrations are made")

func TestBE7ManyLeasesInBoundedTimeAndMemory(t *testing.T) {
	s := opened(t, etcd.Options{})
	o := eager()
	o.Patience = time.Minute
	c := s.Config(o)
	began := time.Now()
	var all sync.WaitGroup
	work := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range work {
				if _, err := c.Register(context.Background(), *configtest.Object(fmt.Sprintf("vm-%05d", i), i), time.Hour); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range *leases {
		work <- i
	}
	close(work)
	all.Wait()
	registered := time.Since(began)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	clock, began := testbed.StartClock(t), time.Now()
	recorder, _ := configtest.Listen(t, c)
	seen := recorder.Wait(t, "all of them", func(s configtest.Seen) bool { return len(s.Objects) == *leases })
	loaded := clock.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(*leases)
	t.Logf("%d registered in %v, loaded in %v, %d bytes held for each", *leases, registered, loaded, held)
	if each := registered / time.Duration(*leases); each > 50*time.Millisecond || loaded > 10*time.Second || held > 16<<10 {
		t.Errorf("%v for each, loaded in %v, %d bytes each", each, loaded, held)
	}
	if n := len(seen.Updates); n > 2 {
		t.Errorf("they came as %d updates", n)
	}
}

// Writes need no leader of ours: a client that holds a lock of that name delays nothing.
func TestBE8LocksAndElectionsChangeNothing(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	recorder, _ := configtest.Listen(t, c)
	session, err := concurrency.NewSession(s.Client(), concurrency.WithTTL(1))
	if err != nil {
		t.Fatal(err)
	}
	election := concurrency.NewElection(session, "/isthmus/v1/leader")
	if err := election.Campaign(t.Context(), "somebody"); err != nil {
		t.Fatal(err)
	}
	session.Orphan() // its holder is dead
	for _, key := range []string{"/isthmus/v1/lock/config", "/isthmus/v1/election/head", "/isthmus/v1/config/lock"} {
		put(t, s, key, "held for ever")
	}
	configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	if _, err := c.Register(t.Context(), *configtest.Object("vm", 1), time.Minute); err != nil {
		t.Error(err)
	}
	seen := recorder.Wait(t, "both objects, and the strange key",
		func(s configtest.Seen) bool { return len(s.Objects) == 2 && s.Codes() == "UNKNOWN_KEY" })
	if !strings.Contains(seen.Problems[0].Object, "config/lock") {
		t.Errorf("%+v", seen.Problems)
	}
	for _, key := range []string{"/isthmus/v1/lock/config", "/isthmus/v1/election/head", "/isthmus/v1/config/lock"} {
		if _, err := s.Client().Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	recorder.WaitRevision(t, configtest.Must(t, c, configtest.Set(1, configtest.Object("a", 2))))
}

func TestBE10ForeignAndTruncatedSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	folder := func(values int64) string {
		dir := filepath.Join(t.TempDir(), "etcd")
		s := open(t, dir)
		c := s.Config(patient())
		for n := range values {
			configtest.Must(t, c, counters(n, n+1))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "member", "snap", "db")
	}
	mine := folder(2)
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := read(mine)
	for name, db := range map[string][]byte{
		"truncated": good[:5*os.Getpagesize()], "empty": {}, "no snapshot": []byte(strings.Repeat("no snapshot ", 4096)),
		"of another store, newer": read(folder(5)), "of another store, older": read(folder(1)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(mine, db, 0o600); err != nil {
				t.Fatal(err)
			}
			patience := configtest.Patience
			if name == "of another store, newer" {
				patience = 3 * time.Second // etcd waits for ever
			}
			s, err := etcd.Open(t.Context(), etcd.Options{DataDir: filepath.Dir(filepath.Dir(filepath.Dir(mine))), Patience: patience})
			if err == nil {
				reading, cancel := context.WithTimeout(t.Context(), time.Minute)
				err = s.Config(patient()).Run(reading, ignored{})
				cancel()
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "restore a backup") {
				t.Errorf("the error is %v", err)
			}
			t.Log(err)
		})
	}
}
