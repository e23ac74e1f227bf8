package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// DirPlaceholder stands, in the configuration of an Envoy, for its folder.
const DirPlaceholder = "$DIR"

// EnvoyOptions say how an Envoy is run.
type EnvoyOptions struct {
	Name      string            // For logs; default envoy.
	Config    []byte            // The bootstrap, in YAML or JSON; the testbed adds the admin address.
	Files     map[string][]byte // Written to the folder of the Envoy before it starts.
	Namespace *Namespace        // Nil is the network of the test.
	NetAdmin  bool              // It may open transparent sockets.
	UID       int               // Default 1337 for root, else the user of the test.
	Admin     netip.AddrPort    // Default a unix socket that the test reaches whatever the namespace.
	Args      []string          // Such as --service-node and --service-cluster.
}

// Envoy is one Envoy with a folder that it can read and write.
type Envoy struct {
	*Process
	Dir string

	t      testing.TB
	admin  string
	client *http.Client
}

// StartEnvoy runs Envoy and returns when its admin interface answers. An Envoy
// that waits for its control plane is not live by then; see WaitReady.
func StartEnvoy(t testing.TB, options EnvoyOptions) *Envoy {
	t.Helper()
	program := locate(t, "envoy")
	if options.Name == "" {
		options.Name = "envoy"
	}
	if os.Geteuid() != 0 {
		options.UID = 0
	} else if options.UID == 0 {
		options.UID = ProxyUID
	}
	e := &Envoy{t: t, Dir: envoyDir(t, options.UID), admin: "http://admin"}
	for name, content := range options.Files {
		e.WriteFile(name, content)
	}
	if err := os.Mkdir(filepath.Join(e.Dir, "run"), 0o777); err != nil {
		t.Fatalf("making the folder of %s: %v", options.Name, err)
	}
	if err := os.Chmod(filepath.Join(e.Dir, "run"), 0o777); err != nil {
		t.Fatalf("making the folder of %s: %v", options.Name, err)
	}
	config := bytes.ReplaceAll(options.Config, []byte(DirPlaceholder), []byte(e.Dir))
	e.WriteFile("envoy.yaml", config)
	args := []string{
		"-c", filepath.Join(e.Dir, "envoy.yaml"), "--config-yaml", e.adminConfig(options), "--concurrency", "1",
		"--disable-hot-restart", "--file-flush-interval-msec", "100", "--drain-time-s", "1", "--parent-shutdown-time-s", "2",
	}
	e.Process = StartProgram(t, ProgramOptions{
		Name: options.Name, Path: program, Args: append(args, options.Args...), Dir: e.Dir,
		Namespace: options.Namespace, UID: options.UID, NetAdmin: options.NetAdmin, Ready: probe(e.client, e.admin+"/server_info"),
	})
	return e
}

// adminConfig returns the bootstrap's admin section and makes its client.
func (e *Envoy) adminConfig(options EnvoyOptions) string {
	e.client = options.Namespace.patientClient(nil)
	if options.Admin.IsValid() {
		e.admin = "http://" + options.Admin.String()
		return fmt.Sprintf(`{"admin":{"address":{"socket_address":{"address":%q,"port_value":%d}}}}`,
			options.Admin.Addr(), options.Admin.Port())
	}
	socket := filepath.Join(e.Dir, "run", "admin")
	e.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return fmt.Sprintf(`{"admin":{"address":{"pipe":{"path":%q}}}}`, socket)
}

// envoyDir makes a short folder, because paths of unix sockets are short, that
// the user of the Envoy owns.
func envoyDir(t testing.TB, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "envoy-")
	if err != nil {
		t.Fatalf("making the folder of an Envoy: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("making the folder of an Envoy: %v", err)
	}
	if uid != 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatalf("making the folder of an Envoy: %v", err)
		}
	}
	return dir
}

// WriteFile puts a file into the folder by a rename, which is what Envoy
// watches for. It returns its path.
func (e *Envoy) WriteFile(name string, content []byte) string {
	e.t.Helper()
	path := filepath.Join(e.Dir, name)
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		e.t.Fatalf("writing %s for Envoy: %v", name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		e.t.Fatalf("writing %s for Envoy: %v", name, err)
	}
	return path
}

// ReadFile returns a file of the folder, such as an access log, or nothing if
// Envoy has not written it yet.
func (e *Envoy) ReadFile(name string) []byte {
	content, err := os.ReadFile(filepath.Join(e.Dir, name))
	if err != nil {
		return nil
	}
	return content
}

// WaitReady returns when Envoy is live: its first configuration is complete.
func (e *Envoy) WaitReady(limit time.Duration) {
	e.t.Helper()
	WaitFor(e.t, limit, "Envoy to be live", func() error {
		_, err := e.Admin("/ready")
		return err
	})
}

// Admin gets a path of the admin interface; other statuses than 200 are errors.
func (e *Envoy) Admin(path string) ([]byte, error) { return e.ask(http.MethodGet, path) }

// AdminPost posts to a path of the admin interface, such as /drain_listeners.
func (e *Envoy) AdminPost(path string) ([]byte, error) { return e.ask(http.MethodPost, path) }

func (e *Envoy) ask(method, path string) ([]byte, error) {
	request, err := http.NewRequest(method, e.admin+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", path, err)
	}
	answer := send(e.client, request)
	if err := answer.failed(); err != nil {
		return nil, fmt.Errorf("asking Envoy for %s: %w", path, err)
	}
	return answer.Body, nil
}

// Stat returns a counter or gauge by its full name, 0 if it does not exist.
func (e *Envoy) Stat(name string) uint64 {
	e.t.Helper()
	var stats struct {
		Stats []struct {
			Name  string
			Value any
		}
	}
	e.decode("/stats?format=json&filter="+url.QueryEscape("^"+regexp.QuoteMeta(name)+"$"), &stats)
	for _, stat := range stats.Stats {
		if value, number := stat.Value.(float64); stat.Name == name && number {
			return uint64(value)
		}
	}
	return 0
}

// ConfigDump returns the configuration that Envoy has, endpoints included, as
// envoy.admin.v3.ConfigDump in JSON.
func (e *Envoy) ConfigDump() []byte { e.t.Helper(); return e.must("/config_dump?include_eds") }

// Clusters returns envoy.admin.v3.Clusters in JSON.
func (e *Envoy) Clusters() []byte { e.t.Helper(); return e.must("/clusters?format=json") }

func (e *Envoy) must(path string) []byte {
	e.t.Helper()
	body, err := e.Admin(path)
	if err != nil {
		e.t.Fatal(err)
	}
	return body
}

func (e *Envoy) decode(path string, into any) {
	e.t.Helper()
	if err := json.Unmarshal(e.must(path), into); err != nil {
		e.t.Fatalf("reading the answer of Envoy to %s: %v", path, err)
	}
}

// ValidateEnvoy returns what Envoy holds against a bootstrap, nil if nothing.
func ValidateEnvoy(t testing.TB, config []byte) error {
	t.Helper()
	file := writeFile(t, t.TempDir(), "envoy.yaml", config)
	printed, err := exec.Command(locate(t, "envoy"), "--mode", "validate", "-l", "error", "-c", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("validating the configuration of Envoy: %w: %s", err, printed)
	}
	return nil
}
