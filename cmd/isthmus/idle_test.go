package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// idle is how long an idle hub is watched: a minute in a soak run.
var idle = flag.Duration("idle", time.Second, "how long an idle hub is watched")

// mostWakeUps is how often the threads of an idle hub may wake in a second: 80 to 95
// do, and 140 with etcd's own ticks of 100 ms. A slow machine makes them fewer.
const mostWakeUps = 115

// TestR65AnIdleHubSeldomWakes counts how often the threads of a hub without
// clusters wake: there comes a time in which they seldom do. Over a minute the hub
// also uses at most 0.5 % of a core.
func TestR65AnIdleHubSeldomWakes(t *testing.T) {
	dir := shortDir(t)
	clusters := filepath.Join(dir, "clusters") // an empty folder keeps the sample away
	if err := os.Mkdir(clusters, 0o700); err != nil {
		t.Fatal(err)
	}
	p := startProgramIn(t, dir, "--kubeconfig-dir", clusters)
	proc := filepath.Join("/proc", strconv.Itoa(p.Process.Pid))
	p.at().await(t, "a time in which the hub seldom wakes", func() error {
		woken, share := watchIdle(t, proc)
		t.Logf("an idle hub wakes %.0f times a second and uses %.2f %% of a core", woken, 100*share)
		if *idle >= time.Minute && share > 0.005 {
			t.Errorf("an idle hub uses %.2f %% of a core, want at most 0.5 %%", 100*share)
		}
		if woken > mostWakeUps {
			return fmt.Errorf("it wakes %.0f times a second, want at most %d", woken, mostWakeUps)
		}
		return nil
	})
}

// watchIdle watches a process for as long as the flag says: how often its threads
// wake in a second, and its share of a core.
func watchIdle(t *testing.T, proc string) (woken, share float64) {
	t.Helper()
	began, wakeUps, used := time.Now(), wakeUpsOf(t, proc), processorOf(t, proc)
	timer := time.NewTimer(*idle)
	defer timer.Stop()
	<-timer.C
	took := time.Since(began)
	return float64(wakeUpsOf(t, proc)-wakeUps) / took.Seconds(), float64(processorOf(t, proc)-used) / float64(took)
}

// wakeUpsOf is how often the threads of a process have waited.
func wakeUpsOf(t *testing.T, proc string) (all int) {
	t.Helper()
	threads, err := filepath.Glob(filepath.Join(proc, "task", "*", "status"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%s has no threads: %v", proc, err)
	}
	for _, file := range threads {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(data), "\nvoluntary_ctxt_switches:")
		n := 0
		if _, err := fmt.Sscan(after, &n); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all += n
	}
	return all
}

// processorOf is the time that a process has used.
func processorOf(t *testing.T, proc string) time.Duration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after) // the first is the third of the file
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
