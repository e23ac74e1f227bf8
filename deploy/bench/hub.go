package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/deploy/testbed"
)

// wholeHub is the hub's own program with a real cluster: registry, merge, push
// and the state on disk are all in what it costs.
type wholeHub struct {
	*testbed.Hub
	server   *testbed.Kube
	services int
}

// printHub measures what one endpoint change costs the program as a whole, at
// three sizes, beside rawfan with the same bytes.
func printHub(ctx context.Context, o options) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(out, "server\tservices\tclients\tfirst config, all\tCPU/client\tchange to last client p50\tp90\tCPU/change\tRSS\n")
	sizes := []int{o.small, o.middle, o.large}
	hub, raw := make([]result, len(sizes)), make([]result, len(sizes))
	for i, size := range sizes {
		fmt.Fprintf(os.Stderr, "measuring the whole hub and rawfan with %d services and %d clients\n", size, o.clients)
		var recording string
		err := on(func(s *stage) (err error) {
			hub[i], recording, err = measureWhole(ctx, s, size, o)
			return err
		})
		if err != nil {
			return err
		}
		raw[i], _, err = measure(ctx, "rawfan", size, recording, o)
		err = errors.Join(err, os.RemoveAll(recording))
		if err != nil {
			return err
		}
		hub[i].print(out, "whole hub", size, o.clients)
		raw[i].print(out, "rawfan", size, o.clients)
	}
	fmt.Fprintf(out, "\nCPU of one endpoint change, whole hub, %d services ÷ %d\t%.2f (goal 1.5)\n", o.large, o.small,
		hub[2].cpuPerChange/hub[0].cpuPerChange)
	for i, size := range sizes {
		fmt.Fprintf(out, "CPU of one endpoint change, whole hub ÷ rawfan, %d services\t%.2f (goal 4 at 1,000)\n", size,
			hub[i].cpuPerChange/raw[i].cpuPerChange)
	}
	return out.Flush()
}

func measureWhole(ctx context.Context, s *stage, services int, o options) (result, string, error) {
	h, err := startWhole(s, services, o)
	if err != nil {
		return result{}, "", err
	}
	return measureSubject(ctx, h, h.XDS, services, true, o)
}

// startWhole runs the hub with a cluster of so many services until the stage ends.
func startWhole(s *stage, services int, o options) (*wholeHub, error) {
	program, err := filepath.Abs(o.program)
	if err != nil {
		return nil, err
	}
	h := &wholeHub{services: services, server: testbed.StartKube(s, testbed.KubeOptions{Name: "whole", ServiceCIDR: "10.96.0.0/12"})}
	if err := h.fill(); err != nil {
		return nil, err
	}
	dir := s.TempDir()
	if err := os.WriteFile(filepath.Join(dir, string(benchCluster)+".yaml"), h.server.Kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	h.Hub = testbed.StartHub(s, testbed.HubOptions{Program: program, Args: []string{"--kubeconfig-dir", dir}})
	return h, nil
}

// fill makes services of ten endpoints each.
func (h *wholeHub) fill() error {
	h.server.Apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`)
	var group errgroup.Group
	group.SetLimit(8)
	for i := range h.services {
		group.Go(func() error {
			service := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s%d"},"spec":{"ports":[{"name":"http","port":80,"targetPort":8080}]}}`, i)
			return errors.Join(h.post("POST", "/api/v1/namespaces/ns/services", service), h.post("POST", slicesPath, sliceOf(i, 0)))
		})
	}
	return group.Wait()
}

func (h *wholeHub) post(method, path, body string) error {
	answer := h.server.Do(method, path, []byte(body))
	if answer.Err != nil || answer.Status >= 300 {
		return fmt.Errorf("%s %s: %d %.200s, %w", method, path, answer.Status, answer.Body, answer.Err)
	}
	return nil
}

const slicesPath = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"

// sliceOf has ten endpoints in three zones; the last depends on turn.
func sliceOf(i, turn int) string {
	var endpoints []string
	for e := range 10 {
		last := e + 1
		if e == 9 {
			last += turn % 200
		}
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["172.%d.%d.%d"],"conditions":{"ready":true},"zone":"z%d"}`,
			16+i>>8, i&255, last, e%3))
	}
	return fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"s%[1]d-x","labels":{"kubernetes.io/service-name":"s%[1]d"}},"addressType":"IPv4","ports":[{"name":"http","port":8080}],"endpoints":[%[2]s]}`,
		i, strings.Join(endpoints, ","))
}

func (h *wholeHub) change(turn int) (time.Time, error) {
	i := turn % h.services
	at := time.Now()
	return at, h.post("PUT", fmt.Sprintf("%s/s%d-x", slicesPath, i), sliceOf(i, turn+1))
}

// usage is read from the kernel: the program answers no such question.
func (h *wholeHub) usage() (cpu time.Duration, rss int64, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(h.PID()))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, at := range []int{11, 12} { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		ticks += n
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return 0, 0, err
	}
	rss, err = kibibytes(status, "VmHWM")
	return time.Duration(ticks) * 10 * time.Millisecond, rss, err
}
