package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	memoryApplies = 4
	memoryObjects = 5000 // of one apply
	settleFor     = time.Minute
	settleEvery   = time.Second
	heapEvery     = 10 // looks: the hub makes half a megabyte of garbage to tell its heap
)

// footprint is what one apply took of the hub's memory, in bytes.
type footprint struct {
	request         int64
	peak            int64 // largest resident size during the apply
	rss, anon, file int64 // resident sizes a minute later, as a whole, of memory and of mapped files
	live            int64 // heap that is reachable then
}

// printMemory applies ServiceEntries of three endpoints in large requests to the hub's
// own program with an embedded etcd, and prints what each request took and left.
func printMemory(ctx context.Context, o options) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out,
		"objects\trequest\tpeak\tstays\tanonymous\tfiles\tlive\t(peak-stays)/request (goal 3)\tstays/live (goal 2)\tlive/object (goal 8 kB)\t\n")
	err := on(func(s *stage) error {
		h, err := startEmpty(s, o.program)
		if err != nil {
			return err
		}
		before, err := h.settle(ctx)
		if err != nil {
			return err
		}
		for i := range memoryApplies {
			fmt.Fprintf(os.Stderr, "applying %d ServiceEntries, %d of %d\n", memoryObjects, i+1, memoryApplies)
			f, err := h.applyOnce(ctx, s, i)
			if err != nil {
				return err
			}
			f.print(out, (i+1)*memoryObjects, f.live-before.live)
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

func (f footprint) print(out *tabwriter.Writer, objects int, live int64) {
	mb := func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
	fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.2f\t%.2f kB\t\n", objects, mb(f.request), mb(f.peak), mb(f.rss),
		mb(f.anon), mb(f.file), mb(f.live),
		float64(f.peak-f.rss)/float64(f.request), float64(f.rss)/float64(f.live), float64(live)/float64(objects)/1e3)
}

// emptyHub is the hub's own program without clusters.
type emptyHub struct {
	*testbed.Hub
	program string
}

func startEmpty(s *stage, program string) (*emptyHub, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	return &emptyHub{testbed.StartHub(s, testbed.HubOptions{Program: program, Args: []string{"--kubeconfig-dir", s.TempDir()}}), program}, nil
}

// applyOnce applies objects of a namespace of their own with the command line.
func (h *emptyHub) applyOnce(ctx context.Context, s *stage, round int) (footprint, error) {
	manifests := testbed.PartnerEntries(fmt.Sprintf("round-%d", round), round*memoryObjects, memoryObjects)
	file := filepath.Join(s.TempDir(), "entries.yaml")
	// 5 has the kernel forget the largest resident size so far.
	err := errors.Join(os.WriteFile(file, manifests, 0o600), os.WriteFile(h.proc("clear_refs"), []byte("5"), 0o600))
	if err != nil {
		return footprint{}, err
	}
	if text, err := exec.CommandContext(ctx, h.program, "apply", "--server", h.URL, "-f", file).CombinedOutput(); err != nil {
		return footprint{}, fmt.Errorf("applying: %w: %.300s", err, text)
	}
	f, err := h.settle(ctx)
	f.request = int64(len(manifests))
	return f, err
}

// settle waits a minute. It returns the least that the hub had of each: the rest is garbage
// that is not collected yet.
func (h *emptyHub) settle(ctx context.Context) (footprint, error) {
	least := footprint{rss: math.MaxInt64, live: math.MaxInt64}
	limit, tick := time.NewTimer(settleFor), time.NewTicker(settleEvery)
	defer limit.Stop()
	defer tick.Stop()
	for i := 0; ; i++ {
		now, err := h.look()
		if err != nil {
			return least, err
		}
		if i%heapEvery == 0 {
			live, err := h.heap(ctx)
			if err != nil {
				return least, err
			}
			least.live = min(least.live, live)
		}
		least.peak = max(least.peak, now.peak)
		if now.rss < least.rss {
			least.rss, least.anon, least.file = now.rss, now.anon, now.file
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return least, nil
		case <-ctx.Done():
			return least, ctx.Err()
		}
	}
}

func (h *emptyHub) look() (footprint, error) {
	var f footprint
	status, err := os.ReadFile(h.proc("status"))
	if err != nil {
		return f, err
	}
	for name, value := range map[string]*int64{"VmHWM": &f.peak, "VmRSS": &f.rss, "RssAnon": &f.anon, "RssFile": &f.file} {
		kib, err := kibibytes(status, name)
		if err != nil {
			return f, err
		}
		*value = kib << 10
	}
	return f, nil
}

// heap is the size of all objects on the heap, those included that are not collected yet.
func (h *emptyHub) heap(ctx context.Context) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Health+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := h.Plain.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "\ngo_memstats_heap_alloc_bytes ")
	var size float64
	_, err = fmt.Sscan(after, &size)
	return int64(size), err
}

func (h *emptyHub) proc(file string) string {
	return filepath.Join("/proc", strconv.Itoa(h.PID()), file)
}
