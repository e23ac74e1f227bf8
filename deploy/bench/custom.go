package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

var customResource = apischema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}

// The namespaces of the custom resources, each with so many.
const (
	fewCustom    = 1_000
	manyCustom   = 10_000
	customRounds = 7
	customEdits  = 40
)

func customNamespace(count int) string { return fmt.Sprint("n", count) }

func customPath(count int) string {
	return "/apis/networking.istio.io/v1/namespaces/" + customNamespace(count) + "/virtualservices"
}

// printCustom measures how custom resources of a real API server are read, against client-go
// that lists and decodes the same, and what one changed object costs among few and many.
func printCustom(ctx context.Context, _ options) error {
	return on(func(s *stage) error {
		server := testbed.StartKube(s, testbed.KubeOptions{Name: "custom"})
		fmt.Fprintf(os.Stderr, "filling a cluster with %d custom resources\n", fewCustom+manyCustom)
		if err := fillCustom(s, server); err != nil {
			return err
		}
		set, err := schema.Load(kind.Expressions)
		if err != nil {
			return fmt.Errorf("reading the schemas: %w", err)
		}
		var g goals
		if err := printReading(ctx, s, &g, customReader{server, set}); err != nil {
			return err
		}
		if err := printCustomChange(ctx, s, &g, customReader{server, set}); err != nil {
			return err
		}
		return g.err()
	})
}

// printReading prints what the hub's readings cost, and those of client-go. All take turns.
func printReading(ctx context.Context, s *stage, g *goals, r customReader) error {
	costs, err := compareCosts(
		s,
		func() error { return r.read(ctx, manyCustom, nil) },
		func() error { return r.readWhole(ctx, s, manyCustom) },
		func() error { return listCustom(ctx, r.server) },
		func() error { return listTyped(ctx, r.server) },
	)
	if err != nil {
		return err
	}
	plain, typed := costs[2], costs[3]
	fmt.Printf("client-go: list and decode %d custom resources\t%v\tinto Go types %v\n", manyCustom, plain, typed)
	const mostReading = 1.5
	for i, what := range []string{"reading them", "reading them, and have them in a snapshot and on disk"} {
		goal, toPlain := "no goal", ratio(costs[i].cpu, plain.cpu)
		if i == 0 {
			goal = g.check("the CPU of reading custom resources ÷ client-go", toPlain, mostReading)
		}
		fmt.Printf("%s\t%v\tratio to client-go: CPU %.2f (%s), allocations %.2f; into Go types: CPU %.2f\n", what, costs[i],
			toPlain, goal, float64(costs[i].allocations)/float64(plain.allocations), ratio(costs[i].cpu, typed.cpu))
	}
	return nil
}

// cost is what something took.
type cost struct {
	cpu         time.Duration
	allocations uint64
}

func (c cost) String() string {
	return fmt.Sprintf("%v of CPU and %d allocations", c.cpu.Round(time.Millisecond), c.allocations)
}

// compareCosts measures each several times, one after the other. The times are medians, the
// allocations those of the last turn: they hardly vary.
func compareCosts(s *stage, measured ...func() error) ([]cost, error) {
	costs := make([]cost, len(measured))
	turns := make([]func() (time.Duration, error), len(measured))
	for i, measure := range measured {
		turns[i] = func() (time.Duration, error) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := testbed.UsedCPU(s)
			err := measure()
			used := testbed.UsedCPU(s) - began
			runtime.ReadMemStats(&after)
			costs[i].allocations = after.Mallocs - before.Mallocs
			return used, err
		}
	}
	took, err := takeTurns(customRounds, turns...)
	for i := range took {
		costs[i].cpu = took[i]
	}
	return costs, err
}

// printCustomChange prints what one changed object costs.
func printCustomChange(ctx context.Context, s *stage, g *goals, r customReader) error {
	among := func(count int) func() (time.Duration, error) {
		return func() (used time.Duration, err error) {
			err = r.read(ctx, count, func(heard <-chan struct{}) error {
				before := testbed.UsedCPU(s)
				for turn := range customEdits {
					if err := r.edit(count, turn); err != nil {
						return err
					}
					<-heard
				}
				used = (testbed.UsedCPU(s) - before) / customEdits
				return nil
			})
			return used, err
		}
	}
	costs, err := takeTurns(customRounds, among(fewCustom), among(manyCustom))
	if err != nil {
		return err
	}
	const mostChange = 1.3 // the same, and what chance adds
	grows := ratio(costs[1], costs[0])
	fmt.Printf("CPU of one changed custom resource\t%v among %d\t%v among %d\tratio %.2f (%s)\n", costs[0], fewCustom, costs[1],
		manyCustom, grows, g.check("the CPU of one changed custom resource, 10,000 ÷ 1,000", grows, mostChange))
	return nil
}
