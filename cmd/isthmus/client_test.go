package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/apply"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

const manifest1 = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: %s, namespace: shop}\nspec: {host: web}\n"

func TestBF1WrongUsageOfTheClientIsOneLineAndExit2(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	write(t, "a.yaml", fmt.Sprintf(manifest1, "a"))
	for line, want := range map[string]string{
		"get":                          "needs a kind",
		"get vs --nope":                "--nope",
		"get vs -o custom":             "--output",
		"get vs -o yaml=x":             "only jsonpath",
		"get vs --server a --server b": "given twice",
		"get vs -n a -n b":             "given twice",
		"get vs --server ftp://hub":    "not the address of a hub",
		"get vs --server http://127.0.0.1:1 --tls-ca x": "plaintext",
		"get vs --timeout 10":                           "--timeout",
		"get vs --timeout -1s":                          "--timeout",
		"get vs --timeout 1e99h":                        "--timeout",
		"get vs --context nowhere":                      "unknown context",
		"apply":                                         "-f is missing",
		"apply extra -f a.yaml":                         "extra",
		"apply -f a.yaml -f a.yaml":                     "named twice",
		"apply -f a.yaml --prune":                       "--set",
		"apply -f a.yaml --dry-run=both":                "--dry-run",
		"apply -f a.yaml --wait=never":                  "--wait",
		"apply -f a.yaml --wait --share 2":              "--share",
		"apply -f a.yaml --expected-revision x":         "--expected-revision",
		"apply -f a.yaml --dry-run=client -o json":      "--dry-run=server",
		"delete":                             "either a kind",
		"delete vs web -f a.yaml":            "either a kind",
		"delete vs web --dry-run=client":     "only the hub",
		"rollback":                           "--to",
		"rollback --to -1":                   "--to",
		"history a b c":                      "c",
		"history --limit 0":                  "--limit",
		"wait":                               "either objects",
		"wait vs/web --for ever":             "--for",
		"wait --revision x":                  "--revision",
		"query":                              "either a document",
		"query {hub{version}} -v x":          "NAME=VALUE",
		"query {hub{version}} -v x=1 -v x=2": "given twice",
		"validate":                           "-f is missing",
		"validate -f a.yaml -o junit":        "--output",
		"completion":                         "name of a shell",
		"completion csh":                     "csh",
		"context use":                        "name of a context",
		"context use nowhere":                "unknown context",
		"describe":                           "KIND/NAME",
		"api-resources extra":                "extra",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errText := command(t, strings.Fields(line)...)
			if code != cmdutil.ExitUsage || out != "" || !strings.Contains(errText, want) || strings.Count(errText, "\n") != 1 {
				t.Errorf("exit %d, out %q, it says %q, want one line with %q", code, out, errText, want)
			}
		})
	}
}

func TestErrorsSayWhatToDoNext(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"get vs --server http://127.0.0.1:1":    `isthmus serve --dev`,
		"get vs --server unix:nothing":          `isthmus serve --dev`,
		"get vs --server https://127.0.0.1:1":   `isthmus serve --dev`,
		"apply -f nothing.yaml":                 "existing file or folder",
		"apply -f empty":                        "isthmus delete",
		"apply -f empty -R":                     "isthmus delete",
		"get vs --server http://hub.invalid:80": "check --server",
		"diff -f empty":                         "isthmus delete",
		"diff -f empty --server http://hub:1":   "isthmus delete",
		"validate -f /dev/null":                 "regular",
		"query -f empty":                        "regular",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errText := command(t, strings.Fields(line)...)
			wantCode := cmdutil.ExitFailed
			if strings.HasPrefix(line, "diff") {
				wantCode = apply.DiffFailed
			}
			if code != wantCode || out != "" || !strings.Contains(errText, want) {
				t.Errorf("exit %d, out %q, it says %q, want %q", code, out, errText, want)
			}
		})
	}
}

func TestHubsByFlagEnvironmentAndContext(t *testing.T) {
	plainEnvironment(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "config.yaml"), `# kept
current: b
contexts:
- {name: a, server: "https://a:1", namespace: shop, tls: {ca: ca.pem}}
- {name: b, server: "unix:/b"}
`)
	t.Setenv("ISTHMUS_CONFIG", file)
	show := func(args ...string) string {
		t.Helper()
		code, out, errText := command(t, append([]string{"context", "show"}, args...)...)
		if code != cmdutil.ExitDone {
			t.Fatalf("exit %d: %s", code, errText)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
	}
	want(show(), "server: unix:/b namespace: default")
	inA := "server: https://a:1 namespace: shop tls ca: " + dir + "/ca.pem"
	want(show("a"), inA)
	want(show("--server", "unix:/f"), "server: unix:/f namespace: default")
	t.Setenv("ISTHMUS_TLS_CA", "/env.pem")
	t.Setenv("ISTHMUS_SERVER", "https://env:1")
	want(show(), "server: https://env:1 namespace: default tls ca: /env.pem")
	want(show("--tls-ca", "/flag.pem"), "server: https://env:1 namespace: default tls ca: /flag.pem")
	t.Setenv("ISTHMUS_TLS_CA", "")
	want(show("--context", "a"), inA)
	want(show("--context", "a", "--server", "https://f:1"), "server: https://f:1 namespace: shop")
	t.Setenv("ISTHMUS_SERVER", "")
	t.Setenv("ISTHMUS_CONTEXT", "a")
	want(show(), inA)
	t.Setenv("ISTHMUS_CONTEXT", "")

	if code, _, errText := command(t, "context", "use", "a"); code != cmdutil.ExitDone {
		t.Fatalf("exit %d: %s", code, errText)
	}
	want(show(), inA)
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "# kept\ncurrent: \"a\"\ncontexts:\n") {
		t.Errorf("the file is %s, %v", text, err)
	}
}

func TestBadFilesOfContextsAreRefused(t *testing.T) {
	plainEnvironment(t)
	for text, want := range map[string]string{
		"contexts: [{name: a, sever: x}]":             "sever",
		"contexts: [{name: a}, {name: a}]":            "contexts[1].name",
		"contexts: [{server: x}]":                     "contexts[0].name",
		"current: a":                                  `unknown context "a"`,
		"current: c\ncontexts: [{name: a}]":           "it defines a",
		"\tnot YAML":                                  "config.yaml",
		"contexts: [{name: a}]\ncontexts: []":         "contexts",
		"contexts: [{name: a, server: x, server: y}]": "server",
	} {
		t.Setenv("ISTHMUS_CONFIG", write(t, filepath.Join(t.TempDir(), "config.yaml"), text))
		if code, _, errText := command(t, "get", "vs"); code == cmdutil.ExitDone || !strings.Contains(errText, want) ||
			strings.Count(errText, "\n") != 1 {
			t.Errorf("%q: exit %d with %q", text, code, errText)
		}
	}
	t.Setenv("ISTHMUS_CONFIG", "/none/config.yaml")
	if code, _, errText := command(t, "get", "vs"); code != cmdutil.ExitFailed || !strings.Contains(errText, "/none/config.yaml") {
		t.Errorf("exit %d with %q", code, errText)
	}
}

// TestBY5OnlyRegularFilesBelowTheRootAreRead: what a folder may give.
func TestBY5OnlyRegularFilesBelowTheRootAreRead(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	write(t, "outside.yaml", fmt.Sprintf(manifest1, "outside"))
	for _, dir := range []string{"fine/..data", "fine/deep", "link", "fifo"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "fine/b.yaml", fmt.Sprintf(manifest1, "b"))
	write(t, "fine/..data/a.yaml", fmt.Sprintf(manifest1, "a"))
	write(t, "fine/deep/c.json",
		`{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"c","namespace":"shop"},"spec":{"host":"web"}}`)
	write(t, "fine/notes.txt", "{{{")
	for from, to := range map[string]string{"fine/a.yaml": "..data/a.yaml", "link/x.yaml": "../outside.yaml", "fifo/x.yaml": "/dev/zero"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"validate -f fine":                             "2 objects in 2 files: valid\n",
		"validate -f fine -R":                          "3 objects in 3 files: valid\n",
		"validate -f fine -f link -R":                  "",
		"validate -f link":                             "",
		"validate -f fifo":                             "",
		"validate -f /dev/zero":                        "",
		"validate -f fine/deep/c.json -f outside.yaml": "2 objects in 2 files: valid\n",
	} {
		code, out, errText := command(t, strings.Fields(line)...)
		if out != want || (code == cmdutil.ExitDone) != (want != "") {
			t.Errorf("%s: exit %d, %q and %q", line, code, out, errText)
		}
	}
	if _, out, _ := command(t, "apply", "-f", "fine", "-R", "--dry-run=client", "-o",
		"name"); out != "destinationrule.networking.istio.io/shop/a\ndestinationrule.networking.istio.io/shop/b\ndestinationrule.networking.istio.io/shop/c\n" {
		t.Errorf("the order is %s", out)
	}
}

func TestBF12ManifestsHaveALimit(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	write(t, "large.yaml", strings.Repeat("# nothing\n", cmdutil.MaxInput/10+1))
	write(t, "half.yaml", strings.Repeat("# nothing\n", cmdutil.MaxInput/20))
	write(t, "bytes.yaml", "a: \xff\n")
	for line, want := range map[string]string{
		"apply -f large.yaml":               "16 MiB",
		"apply -f half.yaml -f ./half.yaml": "in parts",
		"apply -f bytes.yaml":               "UTF-8",
	} {
		if code, _, errText := command(t, strings.Fields(line)...); code != cmdutil.ExitFailed || !strings.Contains(errText, want) {
			t.Errorf("%s: exit %d with %q", line, code, errText)
		}
	}
}

// TestWatchShowsWhatChanges follows the objects of a namespace while they are
// made, changed and deleted.
func TestWatchShowsWhatChanges(t *testing.T) {
	h := atHub(t)
	dir := t.TempDir()
	one := write(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(manifest1, "one"))
	mustRun(t, "apply", "-f", one)
	ctx, cancel := context.WithCancel(t.Context())
	var table, names, svc Text
	done := make(chan int, 3)
	for out, args := range map[*Text][]string{
		&table: {"get", "dr", "-n", "shop", "-w"}, &names: {"get", "dr", "-A", "-w", "-o", "name", "-l", "!hidden"}, &svc: {"get", "svc", "-w"},
	} {
		go func() { done <- run(ctx, args, cmdutil.Streams{Out: out, Err: &h.log}) }()
	}
	says := func(of *Text, want string) {
		t.Helper()
		h.await(t, want, func() error {
			if !strings.Contains(of.String(), want) {
				return fmt.Errorf("it shows %q", of.String())
			}
			return nil
		})
	}
	says(&table, "\none ")
	says(&names, "/one\n")
	says(&svc, "hello.default")
	mustRun(t, "apply", "-f", write(t, filepath.Join(dir, "two.yaml"), fmt.Sprintf(manifest1, "two")))
	says(&table, "\ntwo ")
	says(&names, "/two\n")
	mustRun(t, "delete", "dr/one", "-n", "shop")
	says(&table, "\none    gone")
	cancel()
	for range 3 {
		if code := <-done; code != cmdutil.ExitDone {
			t.Errorf("an interrupted watch exits %d: %s", code, h.log.String())
		}
	}
	if n := strings.Count(table.String(), "NAME"); n != 1 {
		t.Errorf("%d heads in %s", n, table.String())
	}
	if n := strings.Count(svc.String(), "hello."); n != 1 {
		t.Errorf("what did not change is shown again: %s", svc.String())
	}
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errText := command(t, args...)
	if code != cmdutil.ExitDone {
		t.Fatalf("isthmus %v: exit %d: %s", args, code, errText)
	}
	return out
}

func TestSubscriptionsArePrintedInLines(t *testing.T) {
	h := atHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out Text
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"query", "subscription { changes(filter: {kinds: [CLUSTER]}) { resync clusters { cluster { clusterID } } } }"},
			cmdutil.Streams{Out: &out, Err: &h.log})
	}()
	h.await(t, "an event", func() error {
		if !strings.Contains(out.String(), "\n") {
			return fmt.Errorf("it printed %q", out.String())
		}
		return nil
	})
	cancel()
	if code := <-done; code != cmdutil.ExitDone ||
		!strings.HasPrefix(out.String(), `{"data":{"changes":{"resync":true,"clusters":[{"cluster":{"clusterID":"c1"}}`) {
		t.Errorf("exit %d, it printed %s", code, out.String())
	}
}

func TestCompletionAsksTheHub(t *testing.T) {
	atHub(t)
	mustRun(t, "apply", "-f", write(t, filepath.Join(t.TempDir(), "one.yaml"), fmt.Sprintf(manifest1, "one")))
	for line, want := range map[string]string{
		"get|":                    "virtualservices\n",
		"get|dr|-n|shop|":         "one\n",
		"describe|-n|shop|dr/":    "dr/one\n",
		"delete|cluster|":         "c1\n",
		"get|service|":            "hello.default.svc.cluster.local\n",
		"get|gate":                "gateways.networking.istio.io\n",
		"completion|":             "fish\n",
		"get|vs|--server|unix:x|": ":4\n",
	} {
		_, out, errText := command(t, append([]string{"__complete"}, strings.Split(line, "|")...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s completes %q, %q", line, out, errText)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := mustRun(t, "completion", shell); !strings.Contains(out, "__complete") {
			t.Errorf("the script for %s is %.100q", shell, out)
		}
	}
}

func TestMutualTLSOfTheClient(t *testing.T) {
	plainEnvironment(t)
	dir := shortDir(t)
	ca := testbed.NewAuthority(t, "ca")
	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, netip.MustParseAddr("127.0.0.1")))
	args := append([]string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", address, "--xds-addr", "unix:" + filepath.Join(dir, "xds"),
		"--health-addr", "unix:" + filepath.Join(dir, "health"),
	}, secureFlags(t, dir, ca)...)
	ctx, cancel := context.WithCancel(context.Background())
	h := &hubUnderTest{client: socketClient(filepath.Join(dir, "health"))}
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, cmdutil.Streams{Out: &h.log, Err: &h.log}) }()
	defer func() { cancel(); <-done }()
	h.await(t, "the hub to answer", func() error { _, _, err := h.get("/healthz"); return err })
	cert, key := ca.Issue(testbed.Subject{Name: "me"})
	t.Setenv("ISTHMUS_SERVER", "https://"+address)
	query := []string{"query", "{ hub { clusterID } }"}
	if code, _, errText := command(t, query...); code != cmdutil.ExitFailed || !strings.Contains(errText, "--tls-ca") {
		t.Errorf("without the CA: exit %d with %q", code, errText)
	}
	t.Setenv("ISTHMUS_TLS_CA", filepath.Join(dir, "ca"))
	if code, _, errText := command(t, query...); code != cmdutil.ExitFailed || !strings.Contains(errText, "--tls-cert") {
		t.Errorf("without a certificate: exit %d with %q", code, errText)
	}
	t.Setenv("ISTHMUS_TLS_CERT", write(t, filepath.Join(dir, "mine"), string(cert)))
	if code, out, errText := command(t, append(query, "--tls-key",
		write(t, filepath.Join(dir, "mykey"), string(key)))...); code != cmdutil.ExitDone || !strings.Contains(out, `"hub"`) {
		t.Errorf("exit %d, %q and %q", code, out, errText)
	}
}
