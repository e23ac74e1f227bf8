package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	policyWorkloads = 1000 // each is a client, and has an AuthorizationPolicy and a RequestAuthentication of its own
	policyServices  = 50
	policyBatch     = 500 // objects of one apply
	policyTries     = 5   // of one apply, while the store does not answer
	mostPolicies    = 1.3 // the same, and what chance adds
)

// printPolicies measures what one endpoint change costs the program as a whole, with policies for each workload and without.
func printPolicies(ctx context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "measuring the whole hub with %d workloads, without policies and with two for each\n", policyWorkloads)
	return on(func(s *stage) error {
		h, err := startWhole(s, policyServices, o)
		if err != nil {
			return err
		}
		if err := h.addWorkloads(policyWorkloads); err != nil {
			return err
		}
		m := policied{whole: h, program: o.program, dir: s.TempDir(), options: o}
		m.options.clients = policyWorkloads
		m.clients, err = openFleet(ctx, h.XDS, policyServices+1, m.options)
		if err != nil {
			return err
		}
		defer m.clients.close()
		var g goals
		if err := m.compare(ctx, &g); err != nil {
			return err
		}
		return g.err()
	})
}

// addWorkloads makes a service whose endpoints are the addresses of clients, so that their listeners accept requests.
func (h *wholeHub) addWorkloads(count int) error {
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"workloads"},"spec":{"ports":[{"name":"http","port":80,"targetPort":8080}]}}`
	if err := h.post("POST", "/api/v1/namespaces/ns/services", service); err != nil {
		return err
	}
	const each = 100
	for from := 0; from < count; from += each {
		var endpoints []string
		for i := from; i < min(from+each, count); i++ {
			endpoints = append(endpoints, fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":true}}`, clientAddress(i)))
		}
		slice := fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"workloads-%d",
			"labels":{"kubernetes.io/service-name":"workloads"}},"addressType":"IPv4","ports":[{"name":"http","port":8080}],"endpoints":[%s]}`,
			from, strings.Join(endpoints, ","))
		if err := h.post("POST", slicesPath, slice); err != nil {
			return err
		}
	}
	return nil
}

// policied is the hub with workloads that may have policies.
type policied struct {
	whole        *wholeHub
	clients      *clients
	program, dir string
	options      options
}

// later is the hub with changes after those of so many turns: the same ones again would change nothing.
type later struct {
	*wholeHub
	turns int
}

func (l later) change(turn int) (time.Time, error) { return l.wholeHub.change(l.turns + turn) }

// compare measures without policies, with them, and without them again: what a machine does beside the measurement is on both
// sides of the ratio.
func (m *policied) compare(ctx context.Context, g *goals) error {
	var costs [3]float64
	for i := range costs {
		if i > 0 {
			if err := m.police(ctx, i == 1); err != nil {
				return err
			}
		}
		m.clients.forget()
		var r result
		if err := r.changes(later{m.whole, i * policyServices}, m.clients, m.options); err != nil {
			return err
		}
		costs[i] = r.cpuPerChange
	}
	fmt.Print(policyLine(g, costs), "\n\n")
	return nil
}

// policyLine says what a change costs without policies, with them, and without them again, and notes a missed goal.
func policyLine(g *goals, costs [3]float64) string {
	without, with := (costs[0]+costs[2])/2, costs[1]
	return fmt.Sprintf("CPU of one endpoint change at %d workloads\t%v without policies\t%v with two for each\tratio %.2f (%s)",
		policyWorkloads, time.Duration(without).Round(10*time.Microsecond), time.Duration(with).Round(10*time.Microsecond), with/without,
		g.check("the CPU of one endpoint change, with policies ÷ without", with/without, mostPolicies))
}

// police has the command line apply the policies or delete them, and waits until each workload has what that changes.
func (m *policied) police(ctx context.Context, wanted bool) error {
	command := "delete"
	if wanted {
		command = "apply"
	}
	for from := 0; from < policyWorkloads; from += policyBatch / 2 {
		if err := m.run(ctx, command, policyManifests(from, from+policyBatch/2)); err != nil {
			return err
		}
	}
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	group, limit := errgroup.WithContext(limit)
	for _, c := range m.clients.all {
		group.Go(func() error { return c.awaitPolicies(limit, wanted) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("isthmus %s: %w", command, err)
	}
	return nil
}

// run has the command line change objects, and tries again where the store is too slow for a commit: all clients are served
// at the same time.
func (m *policied) run(ctx context.Context, command string, manifests []byte) error {
	program, err := filepath.Abs(m.program)
	if err != nil {
		return err
	}
	file := filepath.Join(m.dir, "policies.yaml")
	if err := os.WriteFile(file, manifests, 0o600); err != nil {
		return err
	}
	args := []string{command, "-f", file, "--server", m.whole.URL}
	if command == "delete" {
		args = append(args, "--ignore-not-found")
	}
	var out []byte
	for range policyTries {
		out, err = exec.CommandContext(ctx, program, args...).CombinedOutput()
		if err == nil {
			return nil
		}
		if !bytes.Contains(out, []byte("[UNAVAILABLE]")) {
			break
		}
	}
	return fmt.Errorf("isthmus %s: %w: %.300s", command, err, out)
}

// policyManifests are the policies of some workloads.
func policyManifests(from, to int) []byte {
	var all strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&all, `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: w%[1]d, namespace: ns}
spec:
  selector: {matchLabels: {app: w%[1]d}}
  rules:
  - from: [{source: {principals: ["cluster.local/ns/ns/sa/caller-%[1]d"]}}]
    to: [{operation: {methods: [GET], paths: [/api/*]}}]
    when: [{key: "request.auth.claims[team]", values: [shop]}]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: w%[1]d, namespace: ns}
spec:
  selector: {matchLabels: {app: w%[1]d}}
  jwtRules:
  - issuer: https://w%[1]d.example.com
    jwks: '{"keys":[{"kty":"oct","alg":"HS256","kid":"k","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0IQ"}]}'
---
`, i)
	}
	return []byte(all.String())
}

// awaitPolicies returns when the listener of the client's workload has policies, or has none any more.
func (c *simulated) awaitPolicies(ctx context.Context, wanted bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for c.policies.Load() != wanted {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the listener of a workload has policies: %t: %w", !wanted, ctx.Err())
		}
	}
	return nil
}
