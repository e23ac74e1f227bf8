package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const firstChange = "first-config-change.md"

// step is something that the reader of a page types, and what it prints. What
// is not shown prints nothing and succeeds.
type step struct {
	command, prints string
	shown           bool
}

// savedAs is how a page says where to save the block that follows.
var savedAs = regexp.MustCompile("(?:^|\\s)as\\s+`([^`]+)`[^`]*:\\s*$")

// steps are those of a page, in order: its files are saved, and its commands are typed.
func steps(page string) []step {
	var all []step
	found, _ := blocks(page)
	for i, b := range found {
		name := savedAs.FindStringSubmatch(b.before)
		switch {
		case name != nil:
			all = append(all, step{command: fmt.Sprintf("cat > %s <<'END_OF_FILE'\n%sEND_OF_FILE\n", name[1], b.text)})
		case b.lang == "sh", b.lang == "bash":
			all = append(all, step{command: b.text})
		case b.lang == "graphql" && strings.HasPrefix(b.text, "subscription"): // it does not end
			all = append(all, step{command: "cat > ~/page.graphql <<'END_OF_FILE'\n" + b.text + "END_OF_FILE\n" +
				"isthmus query -f ~/page.graphql > ~/answer.json & asking=$!\nagain '[ -s ~/answer.json ]'\nkill $asking; wait $asking || true\n"})
		case b.lang == "graphql":
			all = append(all, step{command: "cat > ~/page.graphql <<'END_OF_FILE'\n" + b.text +
				"END_OF_FILE\nisthmus query -f ~/page.graphql > ~/answer.json\n"})
		case b.lang == "text" && len(all) > 0 && strings.HasSuffix(b.before, "prints:\n"):
			all[len(all)-1].prints, all[len(all)-1].shown = b.text, true
		case b.lang == "json" && i > 0 && found[i-1].lang == "sh" && (b.before == "" || strings.HasSuffix(b.before, "formatted:\n")):
			all[len(all)-1].prints, all[len(all)-1].shown = b.text, true
		case b.lang == "console":
			for _, text := range strings.Split("\n"+b.text, "\n$ ")[1:] {
				command, prints := firstCommand(text)
				all = append(all, step{command: command + "\n", prints: prints, shown: true})
			}
		}
	}
	return all
}

// firstCommand ends at the first end of a line that is not quoted and does not continue.
func firstCommand(text string) (command, rest string) {
	for at, r := range text {
		if r == '\n' && strings.Count(text[:at], "'")%2 == 0 && !strings.HasSuffix(text[:at], `\`) {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}

// endOfStep separates what the steps print.
const endOfStep = "\x1e"

// settled waits, as long as it takes a reader to read on, until proxies have answered.
const settled = "while isthmus get proxies 2>/dev/null | grep -q PENDING; do sleep 0.1; done\n"

// follow types the steps into one shell and returns what each prints, and its
// exit code at the end. It ends with what was started in the background.
func follow(t *testing.T, o testbed.ProgramOptions, all []step) []string {
	t.Helper()
	var script strings.Builder
	for _, s := range all {
		if strings.HasPrefix(s.command, "isthmus get ") {
			script.WriteString(settled)
		}
		script.WriteString(s.command + "printf '%s%d%s' '" + endOfStep + "' $? '" + endOfStep + "'\n")
	}
	o.Name, o.Path = "reader", "/bin/bash"
	o.Args = []string{write(t, filepath.Join(o.Dir, "steps.sh"), []byte(script.String()))}
	reader := testbed.StartProgram(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	select {
	case <-reader.Exited():
	case <-ctx.Done():
		t.Fatalf("the steps do not end; they printed\n%s", reader.Output())
	}
	parts := strings.Split(string(reader.Output()), endOfStep)
	if len(parts) != 2*len(all)+1 {
		t.Fatalf("%d steps printed\n%s", len(all), reader.Output())
	}
	printed := make([]string, len(all))
	for i, s := range all {
		printed[i] = parts[2*i]
		if code := parts[2*i+1]; !s.shown && (code != "0" || printed[i] != "") {
			t.Errorf("%s ends with %s and prints\n%s", s.command, code, printed[i])
		}
	}
	return printed
}

var (
	progressLine = regexp.MustCompile(`(?m)^\d+ of \d+ proxies received it, \d+ accepted it\n((?:\d+ of|[a-z]+~.* rejected it))`)
	changing     = []*regexp.Regexp{
		regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`),
		regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
		regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m)\b`),
		regexp.MustCompile(` +`), // columns are as wide as their values
	}
)

// lasting is a text without what is different every time.
func lasting(text string) string {
	for progressLine.MatchString(text) {
		text = progressLine.ReplaceAllString(text, "$1")
	}
	for i, r := range changing {
		text = r.ReplaceAllString(text, fmt.Sprint("<", i, ">"))
	}
	return strings.TrimSpace(text)
}

// recipeOfRun is the arguments with which make run starts the hub.
func recipeOfRun(t *testing.T) string {
	t.Helper()
	recipe := regexp.MustCompile(`(?m)^run: build .*\n\t@\$\(BIN\) (.*)$`).FindStringSubmatch(read(t, "../Makefile"))
	if recipe == nil {
		t.Fatal("the Makefile has no recipe of make run")
	}
	return recipe[1]
}

// TestTheFirstConfigChangeIsAsTold follows the guide word by word on a machine of
// its own: what make run starts, every command, and what each prints.
func TestTheFirstConfigChangeIsAsTold(t *testing.T) {
	machine, dir := testbed.NewNamespace(t, "machine"), shortDir(t)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary.Path(t), filepath.Join(dir, "bin", "isthmus")); err != nil {
		t.Fatal(err)
	}
	all := steps(read(t, firstChange))
	if len(all) < 20 || all[0].command != "make run\n" {
		t.Fatalf("the guide has %d steps: %+v", len(all), all)
	}
	ready := machine.Client(nil)
	testbed.StartProgram(t, testbed.ProgramOptions{
		Name: "hub", Path: binary.Path(t), Args: strings.Fields(recipeOfRun(t)), Dir: dir, Namespace: machine,
		Ready: func(ctx context.Context) error { return get(ctx, ready, "http://127.0.0.1:8081/readyz") },
	})
	envoy, installed, err := toolset.Locate("envoy")
	if err != nil || !installed {
		t.Fatalf("there is no Envoy at %q: %v; run make tools", envoy, err)
	}
	printed := follow(t, testbed.ProgramOptions{Dir: dir, Namespace: machine, Env: []string{
		"PATH=" + filepath.Dir(envoy) + ":" + os.Getenv("PATH"), "TMPDIR=" + dir, "XDG_CONFIG_HOME=" + dir, "ISTHMUS_SERVER=",
		"ISTHMUS_CONFIG=", "ISTHMUS_CONTEXT=",
	}}, all[1:])
	for i, s := range all[1:] {
		if got := lasting(printed[i]); s.shown && got != lasting(s.prints) {
			t.Errorf("step %s: %s prints\n%s", strconv.Itoa(i+2), s.command, printed[i])
		}
	}
	if !slices.ContainsFunc(all, func(s step) bool { return strings.Contains(s.prints, "rejected 1/1") }) {
		t.Error("the guide shows nothing that Envoy rejects")
	}
}
