package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z-]+) +\S`)
	commandLine   = regexp.MustCompile(`isthmus ([a-z][a-z-]*)(.*)`)
	usedShortFlag = regexp.MustCompile(`(?:^|\s)-(\w)\b`)
)

// clientCommands are the commands that speak with a hub, or help to, with their
// helps.
func clientCommands(t *testing.T) map[string]string {
	t.Helper()
	help, code := isthmus(t, "--help")
	_, list, found := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	if code != 0 || !found {
		t.Fatalf("exit %d: %s", code, help)
	}
	commands := map[string]string{}
	for _, m := range listedCommand.FindAllStringSubmatch(list, -1) {
		if name := m[1]; name != "serve" && name != "version" && name != "help" {
			commands[name], _ = isthmus(t, name, "--help")
		}
	}
	return commands
}

func longFlags(help string) []string {
	var flags []string
	for _, m := range helpLine.FindAllStringSubmatch(help, -1) {
		if m[1] != "help" {
			flags = append(flags, m[1])
		}
	}
	return flags
}

func TestEveryCommandAndItsFlagsAreDocumented(t *testing.T) {
	page := read(t, "cli.md")
	shared := longFlagsOf(rows(t, section(t, page, "## Where the hub is"), "flag"))
	commands := clientCommands(t)
	if len(commands) < 12 {
		t.Fatalf("found %v", keysOf(commands))
	}
	for name, help := range commands {
		text := section(t, page, "## "+name)
		if len(blocksOf(text, "sh")) == 0 {
			t.Errorf("%s has no example", name)
		}
		var own []string
		for _, flag := range longFlags(help) {
			if !slices.Contains(shared, flag) {
				own = append(own, flag)
			}
		}
		var documented []string
		for _, table := range tables(text, "flag") {
			documented = append(documented, longFlagsOf(table)...)
		}
		sameSet(t, "flags of "+name, documented, own)
	}
	show, _ := isthmus(t, "context", "show", "--help")
	sameSet(t, "shared flags", shared, longFlags(show))
}

func longFlagsOf(rows [][]string) []string {
	var flags []string
	for _, row := range rows {
		for _, span := range spans(row[0]) {
			if name, long := strings.CutPrefix(strings.Fields(span)[0], "--"); long {
				flags = append(flags, name)
			}
		}
	}
	return flags
}

// TestCommandLinesOfTheClientExist looks at every command line of the guide.
func TestCommandLinesOfTheClientExist(t *testing.T) {
	commands, seen := clientCommands(t), 0
	for _, page := range guide(t) {
		text := read(t, page)
		for _, block := range append(blocksOf(text, "sh"), blocksOf(text, "console")...) {
			for _, m := range commandLine.FindAllStringSubmatch(strings.ReplaceAll(block, "\\\n", " "), -1) {
				help, ok := commands[m[1]]
				if !ok || m[1] == "context" {
					continue
				}
				seen++
				m[2], _, _ = strings.Cut(m[2], " | ") // other programs have flags of their own
				if words := strings.Fields(m[2]); strings.Contains(help, "Available Commands:") && len(words) > 0 {
					help, _ = isthmus(t, m[1], words[0], "--help")
				}
				for _, used := range usedFlag.FindAllStringSubmatch(m[2], -1) {
					if used[1] != "help" && !slices.Contains(longFlags(help), used[1]) {
						t.Errorf("%s: isthmus %s has no flag --%s", page, m[1], used[1])
					}
				}
				for _, used := range usedShortFlag.FindAllStringSubmatch(m[2], -1) {
					if !strings.Contains(help, "  -"+used[1]+", --") {
						t.Errorf("%s: isthmus %s has no flag -%s", page, m[1], used[1])
					}
				}
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d command lines were seen", seen)
	}
}

// TestConsolesAreReal runs the command lines of the guide's consoles, in order,
// against a hub with the sample, and compares what they print.
func TestConsolesAreReal(t *testing.T) {
	h, dir := startHub(t), t.TempDir()
	page := read(t, "cli.md")
	for _, text := range blocksOf(page, "yaml") {
		if name, ok := strings.CutPrefix(strings.SplitN(text, "\n", 2)[0], "--- # "); ok {
			write(t, filepath.Join(dir, name), []byte(text))
		}
	}
	var sample struct {
		Data struct{ Services struct{ TotalCount int } }
	}
	h.await(t, "the sample", "{ services { totalCount } }", &sample, func() error {
		if n := sample.Data.Services.TotalCount; n < 2 {
			return fmt.Errorf("%d services", n)
		}
		return nil
	})
	ran := 0
	for _, console := range blocksOf(page, "console") {
		for _, step := range strings.Split("\n"+console, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", `isthmus() { "$BINARY" "$@"; }; `+line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "BINARY="+binary.Path(t), "ISTHMUS_SERVER=unix:"+h.socket, "XDG_CONFIG_HOME="+dir)
			out, err := cmd.CombinedOutput()
			ran++
			if strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
				t.Errorf("%s prints (%v)\n%s", line, err, out)
			}
		}
	}
	if ran < 5 {
		t.Errorf("only %d command lines ran", ran)
	}
}

// TestTheContextsOfTheGuideAreRead gives the guide's file of contexts to the
// program.
func TestTheContextsOfTheGuideAreRead(t *testing.T) {
	for _, text := range blocksOf(read(t, "cli.md"), "yaml") {
		if !strings.HasPrefix(text, "current:") {
			continue
		}
		t.Setenv("ISTHMUS_CONFIG", write(t, filepath.Join(t.TempDir(), "config.yaml"), []byte(text)))
		if out, code := isthmus(t, "context", "list"); code != 0 || !strings.Contains(out, "*         prod   https://hub.example:8080") {
			t.Errorf("exit %d: %s", code, out)
		}
		return
	}
	t.Error("the guide has no file of contexts")
}
