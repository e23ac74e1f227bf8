package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// takeTurns measures each several times, one after the other, and returns the medians.
func takeTurns(rounds int, measured ...func() (time.Duration, error)) ([]time.Duration, error) {
	took := make([][]time.Duration, len(measured))
	for range rounds {
		for i, measure := range measured {
			runtime.GC() // none pays for the garbage of another
			d, err := measure()
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], d)
		}
	}
	medians := make([]time.Duration, len(took))
	for i := range took {
		slices.Sort(took[i])
		medians[i] = took[i][rounds/2]
	}
	return medians, nil
}

// result is what one server cost at one size.
type result struct {
	firstAll         time.Duration // until every client has everything
	cpuPerClient     time.Duration // of the first configuration
	lastP50, lastP90 time.Duration // from a change to the last client that has it
	cpuPerChange     float64       // nanoseconds
	rss              int64         // KiB, the largest
}

func (r result) print(out io.Writer, name string, services, clients int) {
	fmt.Fprintf(out, "%s\t%d\t%d\t%v\t%v\t%v\t%v\t%v\t%d MB\n", name, services, clients, r.firstAll.Round(time.Millisecond),
		r.cpuPerClient.Round(100*time.Microsecond), r.lastP50.Round(10*time.Microsecond), r.lastP90.Round(10*time.Microsecond),
		time.Duration(r.cpuPerChange).Round(10*time.Microsecond), r.rss/1024)
}

// subject is a process that serves xDS, and a way to change one endpoint of what
// it serves.
type subject interface {
	usage() (cpu time.Duration, rss int64, err error) // so far; the largest resident size in KiB
	change(turn int) (at time.Time, err error)
}

// measure runs one server at one size. Of the hub it also returns the folder
// with what it sent, for rawfan.
func measure(ctx context.Context, role string, services int, recording string, o options) (r result, recorded string, err error) {
	c, err := startServer(ctx, role, services, recording)
	if err != nil {
		return r, "", err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	return measureSubject(ctx, c, c.address, services, role == "hub", o)
}

// measureSubject connects the clients to the subject, then changes endpoints.
func measureSubject(ctx context.Context, c subject, address string, services int, record bool, o options) (r result,
	recorded string, err error,
) {
	before, _, err := c.usage()
	if err != nil {
		return r, "", err
	}
	began := time.Now()
	f, err := openFleet(ctx, address, services, o)
	if err != nil {
		return r, "", err
	}
	defer f.close()
	r.firstAll = time.Since(began)
	after, _, err := c.usage()
	if err != nil {
		return r, "", err
	}
	r.cpuPerClient = (after - before) / time.Duration(o.clients)
	if err := r.changes(c, f, o); err != nil {
		return r, "", err
	}
	if record {
		recorded, err = f.record()
	}
	return r, recorded, err
}

// changes applies one endpoint change after the other, each when the one before
// has reached every client.
func (r *result) changes(c subject, f *clients, o options) error {
	const warmUp = 5
	const rest = 40 * time.Millisecond // beyond the pace of pushes, so that waiting for it is not measured
	var last []time.Duration
	var before time.Duration
	var err error
	for turn := range o.changes + warmUp {
		if turn == warmUp {
			before, _, err = c.usage()
			if err != nil {
				return err
			}
		}
		<-time.NewTimer(rest).C
		at, err := c.change(turn)
		if err != nil {
			return err
		}
		arrived, err := f.awaitChange(turn + 1)
		if err != nil {
			return err
		}
		if turn >= warmUp {
			last = append(last, arrived.Sub(at))
		}
	}
	after, rss, err := c.usage()
	slices.Sort(last)
	r.lastP50, r.lastP90 = last[len(last)/2], last[len(last)*9/10]
	r.cpuPerChange, r.rss = float64(after-before)/float64(o.changes), rss
	return err
}
