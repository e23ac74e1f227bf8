// Command bench measures what the hub costs and prints every figure as a ratio
// within one run: to itself at another size, or to rawfan, a server without any
// control plane that replays the hub's own bytes to as many streams. Absolute
// figures depend on the machine; the ratios are what to compare.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
)

func main() {
	var o options
	role := flag.String("role", "", "internal: hub or rawfan, the server under test in a process of its own")
	flag.IntVar(&o.clients, "clients", 100, "simulated ADS clients")
	flag.IntVar(&o.changes, "changes", 40, "endpoint changes measured at each size")
	flag.IntVar(&o.small, "small", 250, "services at the small size")
	flag.IntVar(&o.large, "large", 4000, "services at the large size")
	flag.IntVar(&o.middle, "middle", 1000, "services at the size between, for the hub as a whole")
	flag.StringVar(&o.only, "only", "", "measure this alone: xds, apply, attach, custom, policies, page, memory, route, hub or start")
	flag.StringVar(&o.program, "program", "bin/isthmus", "`FILE` of the hub's program, for the hub as a whole")
	flag.IntVar(&o.objects, "objects", 10_000, "objects that are applied at once")
	flag.StringVar(&o.profile, "profile", "", "`FILE` for a CPU profile of apply")
	services := flag.Int("services", 0, "internal: services of the server")
	recording := flag.String("recording", "", "internal: what rawfan replays")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *role, server{services: *services, recording: *recording}, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	clients, changes, small, middle, large, objects int
	only, profile, program                          string
}

func run(ctx context.Context, role string, s server, o options) error {
	switch role {
	case "hub":
		return s.runHub(ctx)
	case "rawfan":
		return s.runRawfan(ctx)
	case "":
		return o.compareAll(ctx)
	}
	return fmt.Errorf("unknown role %q", role)
}

// compareAll runs all measurements and prints them. One that fails or misses a goal does not keep others from running.
func (o options) compareAll(ctx context.Context) error {
	var failed []error
	for _, m := range []struct {
		name string
		run  func(context.Context, options) error
	}{
		{"apply", printApply},
		{"route", printRoute},
		{"attach", printAttach},
		{"custom", printCustom},
		{"policies", printPolicies},
		{"page", printPage},
		{"memory", printMemory},
		{"xds", compare},
		{"hub", printHub},
		{"start", printStart},
	} {
		if o.only != "" && o.only != m.name || ctx.Err() != nil {
			continue
		}
		if err := m.run(ctx, o); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.name, err))
		}
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// compare measures what one endpoint change costs, and prints it.
func compare(ctx context.Context, o options) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	few, many := publishCost(1000), publishCost(20000)
	fmt.Fprintf(out, "publishing one endpoint change\t%v at 1,000 services\t%v at 20,000\tratio %.2f (goal 2)\n\n",
		few, many, ratio(many, few))
	var results []result
	fmt.Fprintf(out, "server\tservices\tclients\tfirst config, all\tCPU/client\tchange to last client p50\tp90\tCPU/change\tRSS\n")
	for _, size := range []int{o.small, o.large} {
		fmt.Fprintf(os.Stderr, "measuring the hub and rawfan with %d services and %d clients\n", size, o.clients)
		hub, recording, err := measure(ctx, "hub", size, "", o)
		if err != nil {
			return err
		}
		raw, _, err := measure(ctx, "rawfan", size, recording, o)
		os.RemoveAll(recording)
		if err != nil {
			return err
		}
		hub.print(out, "hub", size, o.clients)
		raw.print(out, "rawfan", size, o.clients)
		results = append(results, hub, raw)
	}
	fmt.Fprintf(out, "\nCPU of one endpoint change, %d services ÷ %d\t%.2f (goal 1.5)\n", o.large, o.small,
		results[2].cpuPerChange/results[0].cpuPerChange)
	fmt.Fprintf(out, "CPU of one endpoint change, hub ÷ rawfan\t%.2f at %d\t%.2f at %d\n", results[0].cpuPerChange/results[1].cpuPerChange,
		o.small, results[2].cpuPerChange/results[3].cpuPerChange, o.large)
	fmt.Fprintf(out, "change to last client, hub ÷ rawfan\t%.2f at %d\t%.2f at %d\n", ratio(results[0].lastP50, results[1].lastP50), o.small,
		ratio(results[2].lastP50, results[3].lastP50), o.large)
	return out.Flush()
}
