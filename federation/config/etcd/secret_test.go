package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

const secretFolder = "/isthmus/v1/secret/"

func withSecret(base int64, sealed string) config.Commit {
	c := configtest.Set(base, configtest.Object("a", base))
	c.Secrets = []config.Secret{{Of: configtest.Key("a"), Sealed: []byte(sealed)}}
	return c
}

func secretOf(t *testing.T, c *etcd.Config) string {
	t.Helper()
	got, err := c.Secret(t.Context(), configtest.Key("a"))
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestSecretAndObjectAreOneTransaction(t *testing.T) {
	for step, inForce := range map[string]bool{"stage": false, "staged": false, "publish": false, "published": true} {
		t.Run(step, func(t *testing.T) {
			s := opened(t, etcd.Options{})
			crashing := s.Config(patient())
			base := configtest.Must(t, crashing, withSecret(0, "first"))
			crashing.StopAt(step, 1, errCrash)
			if _, err := crashing.Commit(t.Context(), withSecret(base, "second")); !errors.Is(err, errCrash) {
				t.Fatalf("the error is %v", err)
			}
			anew := s.Config(patient())
			recorder, _ := configtest.Listen(t, anew)
			want, revision := "first", base
			if inForce {
				want, revision = "second", base+1
			}
			if seen := recorder.WaitRevision(t, revision); seen.Revision() != revision || secretOf(t, anew) != want {
				t.Errorf("revision %d with the secret %q; want %d with %q", seen.Revision(), secretOf(t, anew), revision, want)
			}
		})
	}
}

func TestDamagedSecretIsNotUsedAndNotShown(t *testing.T) {
	s := opened(t, etcd.Options{})
	c := s.Config(patient())
	configtest.Must(t, c, withSecret(0, "hunter2"))
	all := keys(t, s, secretFolder)
	if len(all) != 1 {
		t.Fatalf("the keys are %v", all)
	}
	for name, value := range map[string]string{
		"of another object": etcd.Seal([]byte(`{"Key":{"Kind":"WorkloadEntry","Name":"b"},"Sealed":"aHVudGVyMg=="}`)),
		"random":            "hunter2",
		"empty":             "",
		"no document":       etcd.Seal([]byte("hunter2")),
	} {
		if _, err := s.Client().Put(t.Context(), all[0], value); err != nil {
			t.Fatal(err)
		}
		got, err := c.Secret(t.Context(), configtest.Key("a"))
		if err == nil || got != nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
			t.Errorf("%s: read %q with %v", name, got, err)
		}
	}
}
