package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// The operation is a page of services with their endpoints, about 56 KiB as in R64.
const (
	pageQuery    = `query Page($first: Int!) { services(first: $first) { nodes { hostname namespace endpoints(first: 50) { totalCount nodes { address health } } } } }`
	pageServices = 100
	pageRounds   = 300
)

// printPage measures what a page of services costs the program as a whole, beside
// encoding the same values as JSON.
func printPage(_ context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "reading pages of %d services of %d from the whole hub\n", pageServices, o.small)
	return on(func(s *stage) error {
		h, err := startWhole(s, o.small, o)
		if err != nil {
			return err
		}
		var page any
		read := func() error { return h.Query(pageQuery, map[string]any{"first": pageServices}, &page) }
		if err := read(); err != nil {
			return err
		}
		text, err := json.Marshal(page)
		if err != nil {
			return err
		}
		before, _, err := h.usage()
		for range pageRounds {
			if err == nil {
				err = read()
			}
		}
		if err != nil {
			return err
		}
		after, _, err := h.usage()
		took, encoded := (after-before)/pageRounds, encodingOf(page)
		fmt.Printf("CPU of a page of %d services with their endpoints, whole hub\t%v of %d KiB (goal 4ms)\tas JSON alone %v\tratio %.1f\n\n",
			pageServices, took.Round(10*time.Microsecond), len(text)>>10, encoded.Round(10*time.Microsecond), ratio(took, encoded))
		return err
	})
}

// encodingOf is what it takes to encode the values.
func encodingOf(values any) time.Duration {
	before, _ := usage()
	for range pageRounds {
		_, _ = json.Marshal(values) // was encoded once already
	}
	after, _ := usage()
	return (after - before) / pageRounds
}
