//go:build browser

package graphiql_test

import (
	"bytes"
	"context"
	_ "embed"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph/graphiql"
)

//go:embed testdata/introspection.json
var introspection []byte

// said finds everything that the page writes to the console: a healthy one is silent.
var said = regexp.MustCompile(`(?m)^.*:CONSOLE.*$`)

// hubServer answers the editor's introspection and counts it; it is the only
// host that Chromium can reach.
func hubServer(t *testing.T) (address string, introspected *atomic.Int32) {
	t.Helper()
	introspected = new(atomic.Int32)
	mux := http.NewServeMux()
	editor := graphiql.Handler("graphql", "{ greeting }")
	mux.Handle("/graphiql", editor)
	mux.Handle("/graphiql/", editor)
	mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, _ *http.Request) {
		introspected.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(introspection)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, introspected
}

// chromium runs the browser on address with its own profile and returns what it
// wrote. ISTHMUS_SCREENSHOTS names a folder that keeps the screenshot.
func chromium(t *testing.T, address string, how ...string) (stdout, stderr string) {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("this test needs the program chromium (Debian: apt-get install chromium)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--no-first-run", "--disable-quic", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + t.TempDir(),
		"--window-size=1280,800", "--virtual-time-budget=20000",
	}, how...)
	var out, log bytes.Buffer
	command := exec.CommandContext(ctx, binary, append(args, address)...)
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		t.Fatalf("running chromium: %v\n%s", err, log.String())
	}
	return out.String(), log.String()
}

func TestEditorLoadsInChromiumWithoutComplaint(t *testing.T) {
	address, introspected := hubServer(t)
	folder := os.Getenv("ISTHMUS_SCREENSHOTS")
	if folder == "" {
		folder = t.TempDir()
	}
	picture := filepath.Join(folder, "graphiql.png")
	_, pictureLog := chromium(t, address+"/graphiql", "--screenshot="+picture)
	page, pageLog := chromium(t, address+"/graphiql", "--dump-dom")

	for _, want := range []string{"graphiql-container", "monaco-editor", "view-line", "greeting"} {
		if !strings.Contains(page, want) {
			t.Errorf("the loaded page has no %q", want)
		}
	}
	if introspected.Load() < 2 {
		t.Errorf("the editor asked the hub %d times for the schema in two visits", introspected.Load())
	}
	for _, line := range said.FindAllString(pictureLog+pageLog, -1) {
		t.Errorf("the console says %s", line)
	}
	if found, err := os.Stat(picture); err != nil || found.Size() < 10_000 {
		t.Errorf("the screenshot shows nothing (%v)", err)
	}
}
