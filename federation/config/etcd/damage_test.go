package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

func get(t *testing.T, s *etcd.Store, key string) []byte {
	t.Helper()
	answer, err := s.Client().Get(context.Background(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%s: %v", key, err)
	}
	return answer.Kvs[0].Value
}

func put(t *testing.T, s *etcd.Store, key, value string) {
	t.Helper()
	if _, err := s.Client().Put(context.Background(), key, value); err != nil {
		t.Fatal(err)
	}
}

// newKey returns the only key that was not there before and ends so.
func newKey(t *testing.T, s *etcd.Store, before []string, end string) string {
	t.Helper()
	for _, key := range keys(t, s, "/isthmus/v1/config/tx/") {
		isNew := strings.HasSuffix(key, end) && !strings.Contains(strings.Join(before, " "), key)
		if isNew && !strings.Contains(string(get(t, s, key)), `"name":"b"`) { // a checkpoint has both objects
			return key
		}
	}
	t.Fatalf("there is no new key that ends in %s", end)
	return ""
}

var damages = []struct {
	name, code string
	of         func(value []byte) string
}{
	{"empty", "UNDECODABLE", func([]byte) string { return "" }},
	{"truncated", "CHECKSUM", func(v []byte) string { return string(v[:len(v)-5]) }},
	{"only a head", "CHECKSUM", func(v []byte) string { return string(v[:20]) }},
	{"random", "UNDECODABLE", func([]byte) string { return "\x00\xff\x17random" }},
	{"a JSON bomb", "UNDECODABLE", func([]byte) string { return strings.Repeat("[", 100_000) }},
	{"another message", "CHECKSUM", func([]byte) string { return etcd.Seal([]byte(`{"Revision":7}`)) }},
	{"format + 1", "NEWER_FORMAT", func(v []byte) string { return strings.Replace(string(v), "isthmus/0001", "isthmus/0002", 1) }},
	{"a bit", "CHECKSUM", func(v []byte) string { w := bytes.Clone(v); w[len(w)-9] ^= 4; return string(w) }},
}

// TestBE1 (and F23) damages the value of one object while the store runs elsewhere.
func TestBE1F23DamagedValueConcernsItsObjectOnly(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			s := opened(t, etcd.Options{})
			writer := s.Config(patient())
			base := configtest.Must(t, writer, configtest.Set(0, configtest.Object("a", 1), configtest.Object("b", 1)))
			// The reader begins before the damage and meets it as the next commit.
			o := eager()
			counted := &counts{}
			o.Meter, o.CheckpointRecords = counted, 1
			reader := s.Config(o)
			before := keys(t, s, "/isthmus/v1/config/tx/")
			writer.Steps(func(name string) {
				if name == "publish" {
					key := newKey(t, s, before, "/value/000000")
					put(t, s, key, c.of(get(t, s, key)))
				}
			})
			recorder, _ := configtest.Listen(t, reader)
			recorder.WaitRevision(t, base)
			second := configtest.Must(t, writer, configtest.Set(base, configtest.Object("a", 2)))
			recorder.WaitRevision(t, second)
			seen := recorder.Wait(t, c.code, func(s configtest.Seen) bool { return s.Codes() == c.code })
			if v := configtest.Value[int](seen.Objects[configtest.Key("a")]); v != 1 {
				t.Errorf("the object is at %d and not as it was", v)
			}
			if p := seen.Problems[0]; !strings.Contains(p.Object, "shop/a") || counted.get(etcd.CountQuarantined) != 1 {
				t.Errorf("the problem is %+v, counted %v", p, counted.of)
			}
			// A start from nothing has the others, and the cure is to apply it again.
			anew, _ := configtest.Listen(t, s.Config(eager()))
			seen = anew.Wait(t, c.code, func(s configtest.Seen) bool { return s.Codes() == c.code && len(s.Objects) == 2 })
			writer.Steps(func(string) {})
			third := configtest.Must(t, reader, configtest.Set(second, configtest.Object("a", 2)))
			seen = recorder.WaitRevision(t, third)
			recorder.Wait(t, "the cure", func(s configtest.Seen) bool {
				return s.Codes() == "" && configtest.Value[int](s.Objects[configtest.Key("a")]) == 2
			})
		})
	}
}

// onlyDamage reports whether the only problem is that the history is damaged. The watcher of the
// log and the maker of checkpoints report it, each when it reads the record.
func onlyDamage(seen configtest.Seen) bool {
	return strings.Trim(strings.ReplaceAll(seen.Codes(), "HISTORY_DAMAGED", ""), " ") == "" && seen.Codes() != ""
}

func TestDamagedRecordKeepsTheLastGoodState(t *testing.T) {
	for _, what := range []string{"/index/000000", "log", "head"} {
		t.Run(what, func(t *testing.T) {
			s := opened(t, etcd.Options{})
			writer, reader := s.Config(patient()), s.Config(eager())
			base := configtest.Must(t, writer, configtest.Set(0, configtest.Object("a", 1)))
			recorder, _ := configtest.Listen(t, reader)
			recorder.WaitRevision(t, base)
			before := keys(t, s, "/isthmus/v1/config/tx/")
			key := "/isthmus/v1/config/head"
			if what == "/index/000000" {
				writer.Steps(func(name string) {
					if name == "publish" {
						key = newKey(t, s, before, what)
						put(t, s, key, "damaged")
					}
				})
			} else {
				writer.Steps(func(name string) {
					if name == "published" {
						put(t, s, key, "damaged")
					}
				})
			}
			// A watcher that read the log's record before its damage does not read it again: then the next is damaged.
			for said, turn := false, 2; !said && turn < 12; turn++ {
				if what == "log" {
					key = fmt.Sprintf("/isthmus/v1/config/log/%020d", base+1)
				}
				base = configtest.Must(t, writer, configtest.Set(base, configtest.Object("a", turn)))
				waitUntil(t, "the fault to be said or passed over", func() bool {
					seen := recorder.Now()
					said = onlyDamage(seen)
					return said || what == "log" && seen.Revision() >= base
				})
			}
			seen := recorder.Now()
			if !onlyDamage(seen) {
				t.Errorf("the problems are %q", seen.Codes())
			}
			if len(seen.Objects) != 1 {
				t.Errorf("objects: %v", seen.Objects)
			}
			err := s.Config(patient()).Run(t.Context(), ignored{})
			if err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("a start with nothing good gives %v", err)
			}
		})
	}
}

func TestBE2UnknownKeysAreIgnoredAndReported(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	base := configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	strange := []string{
		"/isthmus/v1/config/zzz", "/isthmus/v1/config//", "/isthmus/v1/config/log/7", "/isthmus/v1/config/log/\x00",
		"/isthmus/v1/config/tx/../root", "/isthmus/v1/config/tx/A/value/1", "/isthmus/v1/config/once/x",
		"/isthmus/v1/leased/X", "/isthmus/v1/leased//a/b", "/isthmus/v1/leased/A.b/%/c",
	}
	for _, key := range strange {
		put(t, s, key, "x")
	}
	recorder, _ := configtest.Listen(t, c)
	seen := recorder.Wait(t, "all of them", func(s configtest.Seen) bool { return len(s.Problems) == len(strange) })
	if seen.Revision() != base || len(seen.Objects) != 1 || strings.ReplaceAll(seen.Codes(), "UNKNOWN_KEY",
		"") != strings.Repeat(" ", len(strange)-1) {
		t.Errorf("revision %d, %d objects, %v", seen.Revision(), len(seen.Objects), seen.Problems)
	}
	for _, key := range strange {
		if _, err := s.Client().Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	recorder.Wait(t, "their end", func(s configtest.Seen) bool { return len(s.Problems) == 0 })
}

func TestBE2LeasedValueOfAnotherKeyIsNotUsed(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	if _, err := c.Register(t.Context(), *configtest.Object("a", 1), 3600e9); err != nil {
		t.Fatal(err)
	}
	value := get(t, s, "/isthmus/v1/leased/WorkloadEntry.networking.istio.io/shop/a")
	put(t, s, "/isthmus/v1/leased/WorkloadEntry.networking.istio.io/shop/b", string(value))
	put(t, s, "/isthmus/v1/leased/WorkloadEntry.networking.istio.io/shop/c", "random")
	recorder, _ := configtest.Listen(t, c)
	seen := recorder.Wait(t, "both problems", func(s configtest.Seen) bool { return s.Codes() == "OTHER_OBJECT UNDECODABLE" })
	if len(seen.Objects) != 1 {
		t.Errorf("objects: %v", seen.Objects)
	}
}

func TestBE9AlteredHistoryRaisesAnAlarm(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	base := int64(0)
	for range 3 {
		base = configtest.Must(t, c, configtest.Set(base, configtest.Object("a", base)))
	}
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	key := fmt.Sprintf("/isthmus/v1/config/log/%020d", 2)
	sealed := get(t, s, key)
	payload, err := etcd.Payload(sealed)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(payload, []byte(`"Hash":"`)) + len(`"Hash":"`)
	altered := bytes.Clone(payload)
	altered[i] ^= 1
	put(t, s, key, etcd.Seal(altered))
	seen := recorder.Wait(t, "the alarm", func(s configtest.Seen) bool { return s.Codes() == "HISTORY_DAMAGED" })
	if !strings.Contains(seen.Problems[0].Message, "revision") {
		t.Errorf("the alarm is %+v", seen.Problems)
	}
	if _, err := c.Records(t.Context(), 0, 10); err == nil {
		t.Error("an altered history is read as if it were good")
	}
}

func TestF24OtherStoreIsNotServed(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(eager())
	base := configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, base)
	epoch := get(t, s, "/isthmus/v1/epoch")
	put(t, s, "/isthmus/v1/epoch", "another")
	seen := recorder.Wait(t, "the alarm", func(s configtest.Seen) bool { return s.Codes() == "OTHER_STORE" })
	if len(seen.Objects) != 1 {
		t.Error("what was in force is gone")
	}
	if _, err := c.Commit(t.Context(), configtest.Set(base, configtest.Object("b", 1))); err == nil {
		t.Error("a commit into another store is taken")
	}
	put(t, s, "/isthmus/v1/epoch", string(epoch))
	recorder.Wait(t, "its end", func(s configtest.Seen) bool { return s.Codes() == "" })
}

func TestF22FlippedBits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	s := open(t, dir)
	marker := strings.Repeat("find me ", 20)
	configtest.Must(t, s.Config(patient()), configtest.Set(0, configtest.Object("a", marker), configtest.Object("b", 1)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "member", "snap", "db")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := os.Getpagesize()
	refused := 0
	for n := 2; n < 10; n++ { // the type of each page, in its head; some are not in use
		flip(n*page + 8)
		s, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir})
		if err == nil {
			s.Close()
			continue
		}
		refused++
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("page %d: the error is %v", n, err)
		}
	}
	if refused == 0 {
		t.Error("no damaged page was found")
	}
	flip(bytes.LastIndex(good, []byte(marker)) + 5)
	s = open(t, dir)
	defer s.Close()
	recorder, _ := configtest.Listen(t, s.Config(eager()))
	seen := recorder.Wait(t, "the flipped value", func(s configtest.Seen) bool { return s.Codes() == "CHECKSUM" && len(s.Updates) > 0 })
	if len(seen.Objects) != 1 || seen.Objects[configtest.Key("b")] == nil {
		t.Errorf("objects: %v", seen.Objects)
	}
}

// TestR10VanishedStoreIsRefused: the folder that held a store is gone, and what says
// so stays.
func TestR10VanishedStoreIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	first := open(t, dir)
	epoch := first.Epoch()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a failed start does not make the next one succeed
		_, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir})
		if err == nil || !strings.Contains(err.Error(), "the store is gone") || !strings.Contains(err.Error(), "--new-store") {
			t.Fatalf("a vanished store gives %v", err)
		}
	}
	anew, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir, New: true})
	if err != nil {
		t.Fatal(err)
	}
	if anew.Epoch() == epoch {
		t.Error("the new store says that it is the old one")
	}
	if err := anew.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir, New: true}) // nothing is gone: it is opened
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Epoch() != anew.Epoch() {
		t.Error("a store that is there was replaced")
	}
}

// TestR10EpochFileCutShortRefusesNothing: a crash may leave a part of it.
func TestR10EpochFileCutShortRefusesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	first := open(t, dir)
	epoch := first.Epoch()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"", epoch[:9]} {
		if err := os.WriteFile(dir+".epoch", []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if noted, err := os.ReadFile(dir + ".epoch"); err != nil || strings.TrimSpace(string(noted)) != epoch {
			t.Errorf("after %q the note is %q, %v", left, noted, err)
		}
	}
}
