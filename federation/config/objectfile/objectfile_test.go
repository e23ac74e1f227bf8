package objectfile_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/objectfile"
	"isthmus.dev/isthmus/internal/recordfile"
)

const storedKey = "networking.istio.io\x00ServiceEntry\x00shop\x00api"

var entryKey = federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "api"}

// TestG67RecordsOfOlderHubsAreRead: the bytes are those that hubs wrote when each source had
// records of its own.
func TestG67RecordsOfOlderHubsAreRead(t *testing.T) {
	for source, c := range map[string]struct {
		value string
		want  objectfile.Object
	}{
		"a cluster": {
			`{"apiVersion":"networking.istio.io/v1","manifest":{"kind":"ServiceEntry","spec":{"hosts":["a\u0026b"]}},"uid":"f1"}`,
			objectfile.Object{
				UID: "f1", APIVersion: "networking.istio.io/v1",
				Manifest: []byte(`{"kind":"ServiceEntry","spec":{"hosts":["a\u0026b"]}}`),
			},
		},
		"a configuration server": {
			`{"apiVersion":"networking.istio.io/v1","manifest":{"kind":"ServiceEntry"}}`,
			objectfile.Object{APIVersion: "networking.istio.io/v1", Manifest: []byte(`{"kind":"ServiceEntry"}`)},
		},
	} {
		o, kept, err := objectfile.Read([]byte(storedKey), []byte(c.value))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(c.want, kept); diff != "" || o.Key != entryKey || string(o.Manifest) != string(c.want.Manifest) ||
			o.APIVersion != c.want.APIVersion {
			t.Errorf("%s: read %s of %s %s\n%s", source, o.Manifest, o.Key, o.APIVersion, diff)
		}
		again, err := objectfile.Record(entryKey, kept)
		if err != nil || string(again.Key) != storedKey || string(again.Value) != c.value {
			t.Errorf("%s: written as %q %s, %v; want the bytes that were read", source, again.Key, again.Value, err)
		}
	}
}

func TestM13RecordsThatAreNoObjectsAreRefused(t *testing.T) {
	const value = `{"apiVersion":"v1","manifest":{}}`
	for key, value := range map[string]string{
		"ServiceEntry\x00shop\x00api": value,
		storedKey + "\x00c1":          value,
		storedKey + "\x00c1\x00c2":    value,
		storedKey:                     `{"apiVersion":`,
	} {
		if o, _, err := objectfile.Read([]byte(key), []byte(value)); err == nil {
			t.Errorf("%q with %s is read as %s", key, value, o.Key)
		}
	}
}

func TestG67DeletedObjectsLeaveTheFile(t *testing.T) {
	file := objectfile.At(filepath.Join(t.TempDir(), "folder", "c1.db"), "test", "a test")
	header := &struct{ recordfile.Stamp }{}
	r, err := objectfile.Record(entryKey, objectfile.Object{APIVersion: "v1", Manifest: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(true, header, []recordfile.Record{r}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, file); got != 1 {
		t.Errorf("the file has %d objects, want 1", got)
	}
	if err := file.Write(false, header, []recordfile.Record{objectfile.Deleted(entryKey)}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, file); got != 0 {
		t.Errorf("the file has %d objects, want none", got)
	}
}

func count(t *testing.T, file recordfile.File) (n int) {
	t.Helper()
	err := file.Read(&struct{ recordfile.Stamp }{}, func() error { return nil }, func(_ string, key, value []byte) error {
		n++
		_, _, err := objectfile.Read(key, value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
