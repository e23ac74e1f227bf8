package etcd_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// crashes is how often TestKilledAtRandomMoments kills: more in a soak run.
var crashes = flag.Int("crashes", 3, "how often a committing process is killed")

// committer is the variable that makes the test binary a process that commits to
// the store in that folder until it is killed.
const committer = "ISTHMUS_TEST_COMMITTER"

// commitForEver adds one to all counters with each commit, and says each revision
// once it is acknowledged. It renews the objects' filling, so that a commit has
// several steps.
func commitForEver(dir string) {
	s, err := etcd.Open(context.Background(), etcd.Options{DataDir: dir, Patience: configtest.Patience})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	c := s.Config(etcd.ConfigOptions{
		CheckpointRecords: 10, Probe: 20 * time.Millisecond, Sweep: 20 * time.Millisecond,
		Retain: 20, Patience: configtest.Patience,
	})
	go c.Run(context.Background(), ignored{})
	newest, err := c.Records(context.Background(), 0, 1)
	base := int64(0)
	if len(newest) > 0 {
		base = newest[0].Revision
	}
	for err == nil {
		base, err = c.Commit(context.Background(), counters(base, base+1))
		if err == nil {
			fmt.Println("revision", base)
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

// start starts the test binary as a committer and returns its lines.
func start(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), committer+"="+dir)
	cmd.Stderr = io.Discard
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	acknowledged := int64(0)
	for range *crashes {
		cmd, lines := start(t, dir)
		var timer *time.Timer
		for lines.Scan() {
			word, number, _ := strings.Cut(lines.Text(), " ")
			revision, err := strconv.ParseInt(number, 10, 64)
			if word != "revision" || err != nil {
				t.Fatal(lines.Text())
			}
			acknowledged = revision
			if timer == nil {
				timer = time.AfterFunc(rand.N(500*time.Millisecond), func() { cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); timer == nil || err == nil {
			t.Fatalf("it ended by itself: %v", err)
		}
		acknowledged = whole(t, dir, acknowledged)
	}
	t.Logf("%d kills, revision %d", *crashes, acknowledged)
}

// whole checks the store that a killed process left, and returns its revision.
func whole(t *testing.T, dir string, acknowledged int64) int64 {
	t.Helper()
	s := open(t, dir)
	defer s.Close()
	counted := &counts{}
	o := eager()
	o.OrphanAge, o.Meter = time.Millisecond, counted
	c := s.Config(o)
	recorder, stop := configtest.Listen(t, c)
	seen := recorder.Wait(t, "the first update", func(s configtest.Seen) bool { return len(s.Updates) > 0 })
	revision := seen.Revision()
	if revision < acknowledged || revision > acknowledged+1 {
		t.Fatalf("the store is at %d, and %d was acknowledged", revision, acknowledged)
	}
	if n := len(seen.Objects); n != counterCount {
		t.Fatalf("%d objects are there", n)
	}
	for key, o := range seen.Objects {
		if v := counterOf(o); v != revision {
			t.Fatalf("%s is at %d, the store at %d: a commit is there by half", key, v, revision)
		}
	}
	records, err := c.Records(t.Context(), 0, 1000)
	if err != nil || len(records) < int(min(revision, 20)) {
		t.Fatalf("%d records of %d are left: %v", len(records), revision, err)
	}
	waitUntil(t, "orphans to be collected", func() bool { return staged(t, s) == 0 })
	stop()
	if len(recorder.Now().Problems) > 0 {
		t.Errorf("problems: %v", recorder.Now().Problems)
	}
	return revision
}

func TestF30SecondProcessOnTheSameFolderIsRefusedInTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	cmd, lines := start(t, dir)
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	if !lines.Scan() {
		t.Fatal("the first process says nothing")
	}
	testbed.Within(t, 2*time.Second, func() time.Duration {
		began := time.Now()
		_, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir})
		if err == nil || !strings.Contains(err.Error(), "another process uses "+dir) {
			t.Errorf("the error is %v", err)
		}
		return time.Since(began)
	})
}
