package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/hub/logs"
	"isthmus.dev/isthmus/internal/hub/settings"
)

// asProgram makes the test binary behave as the program itself, endlessDrain as one
// whose drain nobody sees the end of.
const (
	asProgram    = "ISTHMUS_TEST_AS_PROGRAM"
	endlessDrain = "ISTHMUS_TEST_ENDLESS_DRAIN"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(runProgram(func(s *settings.Settings) {
			s.AdoptLog = adoptLogs
			if os.Getenv(endlessDrain) != "" {
				s.Drain = time.Hour
			}
		}))
	}
	goleak.VerifyTestMain(m)
}

// Text collects what a command writes, while it runs.
type Text = testbed.LogText

// run executes one command line, without effect on the process, and returns its exit code.
func run(ctx context.Context, args []string, io cmdutil.Streams) int {
	return cli.Run(ctx, args, io, serveCommand(io, func(*settings.Settings) {}))
}

// command runs a command line to its end.
func command(t *testing.T, args ...string) (code int, out, errText string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var o, e Text
	code = run(ctx, args, cmdutil.Streams{Out: &o, Err: &e})
	if ctx.Err() != nil {
		t.Fatalf("isthmus %s did not end; it wrote:\n%s", strings.Join(args, " "), e.String())
	}
	return code, o.String(), e.String()
}

// hubUnderTest is a hub that runs in this process, on unix sockets.
type hubUnderTest struct {
	dir    string
	log    Text
	client *http.Client
	stop   func() int
}

func socketClient(path string) *http.Client { return clientOf("unix", path) }

// clientOf sends all requests to the address.
func clientOf(network, address string) *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "isthmus-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// sockets are the flags that put a hub wholly into a folder.
func sockets(dir string) []string {
	return []string{
		"serve", "--dev", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", "unix:" + filepath.Join(dir, "graphql"),
		"--xds-addr", "unix:" + filepath.Join(dir, "xds"), "--health-addr", "unix:" + filepath.Join(dir, "health"),
	}
}

// startHub runs a hub until the end of the test and waits until it answers.
func startHub(t *testing.T, args ...string) *hubUnderTest {
	t.Helper()
	return startHubIn(t, shortDir(t), args...)
}

// startHubIn is startHub in a folder that is known before.
func startHubIn(t *testing.T, dir string, args ...string) *hubUnderTest {
	t.Helper()
	h := &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "graphql"))}
	done := h.run(t, append(sockets(dir), args...))
	h.await(t, "the hub to answer", func() error {
		if len(done) > 0 {
			t.Fatalf("the hub ended:\n%s", h.log.String())
		}
		_, _, err := h.get("/healthz")
		return err
	})
	return h
}

// startWithHealthAt runs a hub with these arguments, of which only the health listener is known, until the end of the test. It
// waits until the hub is ready.
func startWithHealthAt(t *testing.T, socket string, args []string) *hubUnderTest {
	t.Helper()
	h := &hubUnderTest{client: socketClient(socket)}
	h.run(t, args)
	h.await(t, "the hub to be ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	return h
}

// run runs the hub until it is stopped, at the end of the test at the latest. What it returns has the exit code then.
func (h *hubUnderTest) run(t *testing.T, args []string) <-chan int {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, cmdutil.Streams{Out: io.Discard, Err: &h.log}) }()
	var once sync.Once
	code := -1
	h.stop = func() int {
		once.Do(func() { cancel(); code = <-done })
		return code
	}
	t.Cleanup(func() { h.stop() })
	return done
}

// patience is how long a test waits for what must come: long enough for a machine
// that has other work.
const patience = 3 * time.Minute

func (h *hubUnderTest) await(t *testing.T, what string, condition func() error) {
	t.Helper()
	await(t, what, condition, &h.log)
}

// await polls until the condition holds, as long as patience lasts.
func await(t *testing.T, what string, condition func() error, logs ...*Text) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			for _, log := range logs {
				t.Log(log.String())
			}
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
	}
}

func (h *hubUnderTest) get(path string) (status int, body string, err error) {
	answer, err := h.client.Get("http://localhost" + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), err
}

// query asks the API and reads the data of its answer.
func (h *hubUnderTest) query(query string, into any) error {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return err
	}
	answer, err := h.client.Post("http://localhost/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return err
	}
	if len(envelope.Errors) > 0 {
		return errors.New(envelope.Errors[0].Message)
	}
	return json.Unmarshal(envelope.Data, into)
}

// shownCluster is what the API reports about a cluster.
type shownCluster struct {
	ClusterID, Provider string
	Status              struct{ Phase, Message string }
	Services            struct{ TotalCount int }
	Problems            struct {
		Nodes []struct{ Code, Field, Message string }
	}
}

// cluster returns what the API reports about one cluster.
func (h *hubUnderTest) cluster(id string) (shownCluster, error) {
	var a struct {
		Clusters struct{ Nodes []shownCluster }
	}
	err := h.query(`{ clusters { nodes { clusterID provider status { phase message } services { totalCount } problems { nodes { code field message } } } } }`, &a)
	if err != nil {
		return shownCluster{}, err
	}
	for _, c := range a.Clusters.Nodes {
		if c.ClusterID == id {
			return c, nil
		}
	}
	return shownCluster{}, fmt.Errorf("cluster %s is not among %+v", id, a.Clusters.Nodes)
}

// awaitPhase waits for the cluster's phase and returns what is shown then.
func (h *hubUnderTest) awaitPhase(t *testing.T, id, phase string) shownCluster {
	t.Helper()
	var c shownCluster
	h.await(t, "cluster "+id+" to be "+phase, func() (err error) {
		c, err = h.cluster(id)
		if err == nil && c.Status.Phase != phase {
			err = fmt.Errorf("it is %s: %s", c.Status.Phase, c.Status.Message)
		}
		return err
	})
	return c
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLibrariesLogAsTheHubDoes(t *testing.T) {
	var written Text
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
		klog.ClearLogger()
	})
	adoptLogs(logs.Open(&written, logs.Config{}).Logger)
	log.Print("of net/http")
	klog.Errorf("of client-go")
	klog.V(4).Info("noise")
	klog.Flush()
	for _, want := range []string{`level=INFO msg="of net/http"`, `level=ERROR msg="of client-go"`} {
		if !strings.Contains(written.String(), want) {
			t.Errorf("%q is missing in %q", want, written.String())
		}
	}
	if strings.Contains(written.String(), "noise") {
		t.Errorf("klog's details are logged: %q", written.String())
	}
}
