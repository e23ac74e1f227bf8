package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	startRounds  = 5
	startObjects = 2000 // of one apply
)

// started is what a start of the hub's program takes until it is ready: medians.
type started struct{ ready, cpu time.Duration }

// printStart measures a start without configuration and one with many objects in the hub's own store.
func printStart(ctx context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "starting the hub %d times, then with %d objects\n", startRounds, o.objects)
	var empty, full started
	err := on(func(s *stage) error {
		program, err := filepath.Abs(o.program)
		if err != nil {
			return err
		}
		h := &wholeHub{Hub: testbed.StartHub(s, testbed.HubOptions{Program: program})}
		empty, err = h.starts()
		if err != nil {
			return err
		}
		if err := h.store(ctx, program, s.TempDir(), o.objects); err != nil {
			return err
		}
		full, err = h.starts()
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("start until ready\t%v, CPU %v\twith %d objects\t%v, CPU %v\tCPU ratio %.1f\n\n", empty.ready.Round(time.Millisecond), empty.cpu,
		o.objects, full.ready.Round(time.Millisecond), full.cpu, ratio(full.cpu, empty.cpu))
	return nil
}

func (h *wholeHub) starts() (started, error) {
	var ready, cpu []time.Duration
	for range startRounds {
		h.Stop()
		began := time.Now()
		h.Restart()
		ready = append(ready, time.Since(began))
		used, _, err := h.usage()
		if err != nil {
			return started{}, err
		}
		cpu = append(cpu, used)
	}
	slices.Sort(ready)
	slices.Sort(cpu)
	return started{ready[startRounds/2], cpu[startRounds/2]}, nil
}

// store has the command line apply so many objects.
func (h *wholeHub) store(ctx context.Context, program, dir string, objects int) error {
	for round := range max(objects/startObjects, 1) {
		file := filepath.Join(dir, "objects.yaml")
		if err := os.WriteFile(file, benchManifests(startObjects, round), 0o600); err != nil {
			return err
		}
		apply := exec.CommandContext(ctx, program, "apply", "-f", file, "--server", h.URL)
		if out, err := apply.CombinedOutput(); err != nil {
			return fmt.Errorf("isthmus apply: %w: %.300s", err, out)
		}
	}
	return nil
}
