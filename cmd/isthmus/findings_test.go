package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/client"
)

// untellable wants TLS that proxies cannot have, which only the builders know.
const untellable = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: rule, namespace: default}
spec: {host: hello.default.svc.cluster.local, trafficPolicy: {tls: {mode: SIMPLE%s}}}
`

// statusEvents follows the change feed and writes each change of the rule's status.
func statusEvents(t *testing.T, h *hubUnderTest) *Text {
	t.Helper()
	c, err := client.New(client.Options{URL: "unix:" + filepath.Join(h.dir, "graphql")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	told, over := new(Text), make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Follow(ctx, client.Following{Filter: &client.ChangeFilter{Kinds: []client.ChangeKind{client.ChangeKindDelivery}}},
			func(e client.Event) error {
				for _, o := range e.ConfigObjects {
					_, _ = fmt.Fprintf(told, "%s %s/%s\n", o.Action, o.Object.Kind, o.Object.Name)
				}
				if e.Resync && e.Cursor != nil {
					_, _ = fmt.Fprintln(told, "begun")
				}
				return nil
			}) // it ends with the context
	}()
	t.Cleanup(func() { cancel(); <-over })
	h.await(t, "the feed to begin", func() error { return has(told, "begun") })
	return told
}

func has(shown *Text, want string) error {
	if !strings.Contains(shown.String(), want) {
		return fmt.Errorf("no %q in %q", want, shown.String())
	}
	return nil
}

// What builders find about an object that is applied is in its status, in explain and
// describe, and readers of the change feed get it; all of it ends with the cause.
func TestR24FindingsReachStatusExplainAndTheChangeFeed(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	told := statusEvents(t, s.hub)
	file := filepath.Join(t.TempDir(), "rule.yaml")
	mustRun(t, "apply", "-f", write(t, file, fmt.Sprintf(untellable, ", credentialName: web")))
	s.do("web-1 receives")
	s.do("web-1 accepts")
	const code = "TLS_NOT_AVAILABLE"
	findings := func() ([]string, error) {
		var answer struct {
			ConfigObjects struct {
				Nodes []struct {
					Status struct{ Findings []struct{ Code string } }
				}
			}
		}
		err := s.hub.query(`{configObjects(filter: {kind: "DestinationRule"}) {nodes {status {findings {code}}}}}`, &answer)
		var codes []string
		for _, o := range answer.ConfigObjects.Nodes {
			for _, f := range o.Status.Findings {
				codes = append(codes, f.Code)
			}
		}
		return codes, err
	}
	awaitFinding := func(want bool) {
		t.Helper()
		s.hub.await(t, fmt.Sprintf("the finding to be there: %v", want), func() error {
			codes, err := findings()
			if is := strings.Contains(strings.Join(codes, " "), code); err != nil || is != want {
				return fmt.Errorf("%v, %w", codes, err)
			}
			return nil
		})
	}
	awaitFinding(true)
	s.hub.await(t, "the feed to tell", func() error { return has(told, "STATUS DestinationRule/rule") })
	lines := []string{
		"explain web-1.shop hello:80 -n default", "explain web-1.shop hello:80 -n default -o json",
		"describe dr rule -n default",
	}
	for _, line := range lines {
		if out := mustRun(t, strings.Fields(line)...); !strings.Contains(out, code) || !strings.Contains(out, "credentialName") {
			t.Errorf("%s: %s", line, out)
		}
	}
	codes, err := findings()
	s.must(err)
	s.hub.awaitMetrics(t, fmt.Sprintf("isthmus_xds_findings{code=%q} %d", code, strings.Count(strings.Join(codes, " "), code)))
	before := strings.Count(told.String(), "STATUS")
	mustRun(t, "apply", "-f", write(t, file, fmt.Sprintf(untellable, "")))
	s.do("web-1 receives")
	s.do("web-1 accepts")
	awaitFinding(false)
	s.hub.await(t, "the feed to tell of the end", func() error {
		if now := strings.Count(told.String(), "STATUS"); now <= before {
			return fmt.Errorf("%d times", now)
		}
		return nil
	})
	for _, line := range lines {
		if out := mustRun(t, strings.Fields(line)...); strings.Contains(out, code) {
			t.Errorf("afterwards, %s: %s", line, out)
		}
	}
}

// What a proxy refuses is a finding of the object that asks for it, with the proxy's
// words, until the object is corrected.
func TestR05ARejectionIsAFindingOfItsObject(t *testing.T) {
	s := &stage{t: t, hub: atHub(t), proxies: map[string]*actor{}}
	s.do("web-1 connects")
	file := filepath.Join(t.TempDir(), "rule.yaml")
	manifest := strings.Replace(untellable, "tls: {mode: SIMPLE%s}", "connectionPool: {tcp: {maxConnections: %d}}", 1)
	describes := func(what string, want bool) {
		t.Helper()
		s.hub.await(t, what, func() error {
			out := mustRun(t, strings.Fields("describe dr rule -n default")...)
			if is := strings.Contains(out, "REJECTED_BY_PROXY") && strings.Contains(out, nodeOf("web-1")+" rejected") &&
				strings.Contains(out, "no such cipher"); is != want {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
	}
	mustRun(t, "apply", "-f", write(t, file, fmt.Sprintf(manifest, 7)))
	s.do("web-1 receives")
	s.do("web-1 refuses")
	describes("the rejection to be a finding", true)
	mustRun(t, "apply", "-f", write(t, file, fmt.Sprintf(manifest, 8)))
	for want := true; want; want = !strings.Contains(fmt.Sprint(s.proxies["web-1"].last), "value:8") {
		s.receive("web-1")
		s.must(s.proxies["web-1"].client.Ack(s.proxies["web-1"].last))
	}
	describes("the finding to end", false)
}
