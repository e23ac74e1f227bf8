package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const bridgeGuide = "bridge-two-networks.md"

// TestTheBridgeIsAsTold follows the guide word by word in a checkout of its own: what
// make lab starts, every command, and what each prints; and what make lab-down ends.
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
	if out := run("lab"); !strings.Contains(out, "make lab-down ends them") {
		t.Fatalf("make lab prints\n%s", out)
	}
	files, err := os.Readlink(filepath.Join(checkout, ".lab", "files"))
	if err != nil {
		t.Fatal(err)
	}
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
