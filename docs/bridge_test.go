package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const bridgeGuide = "bridge-two-networks.md"

// troubles are what the reader of the guide does when the networks cannot reach each other: a firewall, a network without gateways,
// with one that is refused, and a host that no Gateway admits. Each time the page says how to find it.
func troubles(t *testing.T) (all []step) {
	t.Helper()
	types := func(command string) { all = append(all, step{command: command + "\n"}) }
	page := section(t, read(t, "troubleshooting.md"), "## Two clusters cannot reach each other")
	asks, stats := blocksOf(page, "sh")[0], strings.TrimSpace(blocksOf(page, "sh")[1])
	finds := func(said ...string) { // what the page's commands say, in time
		want := "grep -q '" + strings.Join(said, "' said && grep -q '") + "' said"
		types("until { " + strings.ReplaceAll(strings.TrimSpace(asks), "\n", "; ") + "; } > said 2>&1 && " + want + "; do sleep 0.2; done")
	}
	const (
		calls  = "until [ \"$(./at caller-c1 curl -s -o answer -w '%{http_code}' -H 'Host: only-c2.shop.svc.cluster.local' http://198.51.100.1:8080/)\" = "
		within = " ]; do sleep 0.2; done"
		change = "sed 's/OLD/NEW/' bridge.yaml > changed.yaml && isthmus apply -f changed.yaml >/dev/null 2>&1"
		mend   = "isthmus apply -f bridge.yaml >/dev/null 2>&1"
	)
	finds("GATEWAY", " REACHABLE from n1")
	const firewall = " INPUT -p tcp --dport 15443 -j REJECT --reject-with tcp-reset"
	types("./at gateway-c2 iptables -A" + firewall)
	types(calls + "503" + within)
	finds("GATEWAY", "LAST_RESORT from n1")
	types(strings.NewReplacer("OLD", `"\*.local"`, "NEW", "web.shop.svc.cluster.local").Replace(change)) // connections from before would stay
	types("./at gateway-c2 iptables -D" + firewall)
	finds("GATEWAY", " REACHABLE from n1")
	types(calls + "503" + within + "\nuntil ./at gateway-c2 " + stats + " | grep -q 'no_filter_chain_match: [1-9]'; do sleep 0.2; done")
	types(mend)
	types(calls + "200" + within)
	types(strings.NewReplacer("OLD", "{address: 192.0.2.104}", "NEW", "{address: 169.254.1.1}").Replace(change))
	finds("NO_GATEWAY_ADDRESS", "Not used", "169.254.1.1.* is a link-local address")
	types("isthmus delete networks.isthmus.dev n2 >/dev/null 2>&1")
	finds("DIRECT", "Gated: *false")
	types(mend)
	types(calls + "200" + within)
	return all
}

// TestTheBridgeIsAsTold follows the guide word by word in a checkout of its own: what
// make lab starts, every command, and what each prints; and what make lab-down ends. Before the cluster is detached, the
// networks cannot reach each other, for the reasons that the page about troubleshooting tells apart (U82).
func TestTheBridgeIsAsTold(t *testing.T) {
	t.Parallel()
	checkout, machine := testbed.ShortDir(t), testbed.NewNamespace(t, "machine")
	demo := filepath.Join(checkout, "bin", "demo")
	if err := os.MkdirAll(filepath.Dir(demo), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary.Path(t), filepath.Join(checkout, "bin", "isthmus")); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", demo, "isthmus.dev/isthmus/deploy/demo")
	build.Env = append(os.Environ(), testbed.Shared()...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the lab: %v\n%s", err, out)
	}
	recipe := func(target string) []string {
		found := regexp.MustCompile(`(?m)^` + target + `:.*\n\t@go build -o bin/demo ./deploy/demo && bin/demo (.*)$`).FindStringSubmatch(read(t,
			"../Makefile"))
		if found == nil {
			t.Fatalf("the Makefile has no recipe of %s", target)
		}
		return strings.Fields(strings.ReplaceAll(found[1], "$(CURDIR)", checkout))
	}
	run := func(target string) string {
		up := testbed.StartProgram(t, testbed.ProgramOptions{Name: target, Path: demo, Args: recipe(target), Dir: "..", Namespace: machine})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		select {
		case <-up.Exited():
		case <-ctx.Done():
			t.Fatalf("make %s does not end; it printed\n%s", target, up.Output())
		}
		return string(up.Output())
	}
	all := steps(read(t, bridgeGuide))
	last := len(all) - 1
	if last < 15 || all[0].command != "make lab\n" || all[last].command != "make lab-down\n" {
		t.Fatalf("the guide has %d steps: %+v", len(all), all)
	}
	defer run("lab-down") // also after a failure: the lab does not end with the test
	if out := run("lab"); !strings.Contains(out, "run make lab-down") {
		t.Fatalf("make lab prints\n%s", out)
	}
	files, err := os.Readlink(filepath.Join(checkout, ".lab", "files"))
	if err != nil {
		t.Fatal(err)
	}
	detach := slices.IndexFunc(all, func(s step) bool { return strings.HasPrefix(s.command, "isthmus cluster detach") })
	all = slices.Insert(all, detach, troubles(t)...)
	last = len(all) - 1
	printed := follow(t, testbed.ProgramOptions{Dir: checkout, Namespace: machine, Env: []string{
		"TMPDIR=" + checkout, "XDG_CONFIG_HOME=" + checkout, "ISTHMUS_SERVER=", "ISTHMUS_CONFIG=", "ISTHMUS_CONTEXT=",
	}}, all[1:last])
	for i, s := range all[1:last] {
		if got := lasting(printed[i]); s.shown && got != lasting(s.prints) {
			t.Errorf("step %d: %s prints\n%s", i+2, s.command, printed[i])
		}
	}
	if out := run("lab-down"); !strings.Contains(out, "everything that it created is removed") {
		t.Errorf("make lab-down prints\n%s", out)
	}
	for _, path := range []string{files, filepath.Dir(files), filepath.Join(checkout, ".lab")} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("make lab-down leaves %s: %v", path, err)
		}
	}
}
