package etcd_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestR63AHubDoesNotReadItsOwnCommits: what a source gives of a commit of the same
// process are the bytes that were committed, not a second copy of them. The watch of
// the head and the end of the commit come in any order.
func TestR63AHubDoesNotReadItsOwnCommits(t *testing.T) {
	c := opened(t, etcd.Options{}).Config(eager())
	recorder, _ := configtest.Listen(t, c)
	var base int64
	for i := range 20 {
		o := configtest.Object(fmt.Sprint("own-", i), 1)
		base = configtest.Must(t, c, config.Commit{Base: base, Changes: []config.Change{{Key: o.Key, Object: o}}})
		if given := recorder.WaitRevision(t, base).Objects[o.Key]; &given.Manifest[0] != &o.Manifest[0] {
			t.Fatalf("%s was read again", o.Key)
		}
	}
}
