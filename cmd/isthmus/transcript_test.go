package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

var update = flag.Bool("update", false, "rewrite the transcripts of testdata/cli")

// TestTranscripts runs the command lines of each testdata/cli/*.txtar against a
// hub of its own, in a folder with the files of the archive, and compares what
// they print. In a transcript "$ " begins a command line, "2> " a line of standard
// error and "=> " an exit code other than 0; moments and ages are shown as words.
// A command line that ends with " &" runs on until "@ end"; other lines with "@ "
// say what proxies do (see stage).
func TestTranscripts(t *testing.T) {
	archives, err := filepath.Glob("testdata/cli/*.txtar")
	if err != nil || len(archives) < 4 {
		t.Fatalf("found %v, %v", archives, err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			unpack(t, archive)
			compareTranscript(t, path, archive, transcript(t, atHub(t), string(archive.Comment)))
		})
	}
}

func compareTranscript(t *testing.T, path string, archive *txtar.Archive, got string) {
	t.Helper()
	if *update {
		archive.Comment = []byte(got)
		write(t, path, string(txtar.Format(archive)))
	}
	if got != string(archive.Comment) {
		t.Errorf("the transcript differs (run with -update to accept):\n%s", got)
	}
}

// TestTranscriptOfClusters is the same for the commands that attach clusters, with
// kubeconfigs of a real API server.
func TestTranscriptOfClusters(t *testing.T) {
	path, err := filepath.Abs("testdata/cluster/attach.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kube := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{
		{Name: "reader"},
		{Name: "nobody"},
		{Name: "wide", Groups: []string{"system:masters"}},
	}})
	kube.GrantRead("reader")
	unpack(t, archive)
	for _, user := range []string{"reader", "nobody", "wide"} {
		write(t, user+".yaml", string(kube.User(user).Kubeconfig()))
	}
	write(t, "exec.yaml", fmt.Sprintf(kubeconfig, "exec: {command: /bin/true}"))
	got := transcript(t, atHub(t), string(archive.Comment))
	compareTranscript(t, path, archive, strings.ReplaceAll(got, kube.URL, "https://SERVER"))
}

// unpack goes to a new folder with the files of an archive.
func unpack(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, f := range archive.Files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, f.Name, string(f.Data))
	}
}

// plainEnvironment has the command line find nothing of the user's.
func plainEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"ISTHMUS_SERVER", "ISTHMUS_CONTEXT", "ISTHMUS_CONFIG", "ISTHMUS_TLS_CA",
		"ISTHMUS_TLS_CERT", "ISTHMUS_TLS_KEY",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// atHub starts a hub that the commands of the test speak with.
func atHub(t *testing.T) *hubUnderTest {
	t.Helper()
	plainEnvironment(t)
	h := startHub(t)
	t.Setenv("ISTHMUS_SERVER", "unix:"+filepath.Join(h.dir, "graphql"))
	h.awaitPhase(t, "c1", "READY")
	h.awaitPhase(t, "c2", "READY")
	h.await(t, "the configuration", func() error { return h.query("{ configSources { name } }", new(any)) })
	return h
}

// transcript runs the command lines of a transcript and rewrites it.
func transcript(t *testing.T, h *hubUnderTest, old string) string {
	t.Helper()
	var out strings.Builder
	on := &stage{t: t, hub: h, proxies: map[string]*actor{}}
	for line := range strings.Lines(old) {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
			out.WriteString(line)
		case line == "@ end\n":
			out.WriteString(line)
			printed(&out, on.end())
		case strings.HasPrefix(line, "@ "):
			out.WriteString(line)
			on.do(strings.TrimSpace(strings.TrimPrefix(line, "@ ")))
		case strings.HasPrefix(line, "$ isthmus "):
			out.WriteString(line)
			command := strings.TrimSpace(strings.TrimPrefix(line, "$ isthmus "))
			if long, ok := strings.CutSuffix(command, " &"); ok {
				on.begin(long)
				continue
			}
			printed(&out, shell(t.Context(), t, command))
		}
	}
	return out.String()
}

// outcome is what a command line printed.
type outcome struct {
	code        int
	out, errors *Text
}

func printed(to *strings.Builder, o outcome) {
	to.WriteString(steady(ended(o.out.String())))
	for one := range strings.Lines(ended(o.errors.String())) {
		to.WriteString("2> " + steady(one))
	}
	if o.code != cmdutil.ExitDone {
		fmt.Fprintf(to, "=> %d\n", o.code)
	}
}

func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

var unsteady = []struct {
	is  *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "MOMENT"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`(\s)\d+s( +)`), "${1}AGE   "},
	{regexp.MustCompile(`(\s)\d+s\n`), "${1}AGE\n"},
	{regexp.MustCompile(`"requestId": "[0-9a-f]+"`), `"requestId": "ID"`},
	{regexp.MustCompile(`/\S+/isthmus/config.yaml`), "CONFIG"},
	{regexp.MustCompile(`(warning: \S+: \S+: ).* (\[IST\d+\])`), "${1}WORDS $2"},
	{regexp.MustCompile(`unix:/\S+/graphql`), "unix:SOCKET"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "VERSION"},
	{regexp.MustCompile(`(?m)(Version: +)[0-9a-f]{16}$`), "${1}VERSION"},
}

func steady(text string) string {
	for _, u := range unsteady {
		text = u.is.ReplaceAllString(text, u.say)
	}
	return text
}

// words divides a command line; single quotes keep what is in them together.
func words(line string) (args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args[len(args)-1] += part
			continue
		}
		fields := strings.Fields(part)
		if i > 0 && len(fields) > 0 && !strings.HasPrefix(part, " ") {
			args[len(args)-1] += fields[0]
			fields = fields[1:]
		}
		args = append(args, fields...)
		if strings.HasSuffix(part, " ") {
			args = append(args, "") // a quoted word follows
		}
	}
	return slices.DeleteFunc(args, func(a string) bool { return a == "" })
}

// shell runs a command line with quotes and "< FILE".
func shell(ctx context.Context, t *testing.T, line string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	o := outcome{out: new(Text), errors: new(Text)}
	io := cmdutil.Streams{Out: o.out, Err: o.errors}
	if before, file, ok := strings.Cut(line, " < "); ok {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		line, io.In = before, f
	}
	o.code = run(ctx, words(line), io)
	return o
}
