package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// AgentOptions say as which pod Istio's agent runs, and with which control plane.
type AgentOptions struct {
	Namespace *Namespace
	Pod       string            // NAMESPACE/NAME
	Account   string            // Of the pod.
	Address   string            // Of the pod.
	Labels    map[string]string // Of the pod.
	Cluster   string            // Its ID, as Istio's installation sets it.
	Token     string            // Of the account, for the control plane.
	Hub       string            // HOST:PORT of the control plane.
	Roots     []byte            // Sign its certificate, in PEM.
	Router    bool              // A gateway, not a sidecar.
	Machine   bool              // It keeps its certificates in a folder, as Istio's packages for machines have it.
	Env       []string          // Further settings, NAME=VALUE.
	Hosts     map[string]string // Addresses by name, as the cluster's DNS has them.
	Config    map[string]any    // Further fields of its ProxyConfig.
}

// Agent is Istio's own agent, unmodified, with the Envoy that it starts. Both run as
// the user ProxyUID.
type Agent struct {
	*Process
	Dir string

	t         testing.TB
	namespace *Namespace
}

// StartAgent runs the agent; see WaitReady.
func StartAgent(t testing.TB, o AgentOptions) *Agent {
	t.Helper()
	program := locate(t, toolset.PilotAgent)
	a := &Agent{Dir: envoyDir(t, ProxyUID), namespace: o.Namespace, t: t}
	namespace, name, _ := strings.Cut(o.Pod, "/")
	for _, dir := range []string{
		"etc/istio/proxy", "etc/istio/pod", "var/run/secrets/istio", "var/run/secrets/tokens",
		"var/run/secrets/workload-spiffe-uds",
	} {
		a.folder(t, dir)
	}
	roots := a.file(t, "var/run/secrets/istio/root-cert.pem", o.Roots)
	a.SetToken(o.Token)
	if o.Machine {
		a.folder(t, "etc/certs")
		a.file(t, "etc/certs/root-cert.pem", o.Roots)
		o.Env = append([]string{"PROV_CERT=./etc/certs", "OUTPUT_CERTS=./etc/certs"}, o.Env...)
	}
	var labels strings.Builder
	for key, value := range o.Labels {
		fmt.Fprintf(&labels, "%s=%q\n", key, value)
	}
	a.file(t, "etc/istio/pod/labels", []byte(labels.String()))
	fields := map[string]any{
		"discoveryAddress": o.Hub, "binaryPath": a.envoy(t), "concurrency": 1, "statusPort": 15020,
		"proxyBootstrapTemplatePath": a.copied(t, filepath.Join(filepath.Dir(program), filepath.Base(toolset.AgentTemplate))),
	}
	maps.Copy(fields, o.Config)
	config, err := json.Marshal(fields)
	if err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	kind := "sidecar"
	if o.Router {
		kind = "router"
	}
	run := ProgramOptions{
		Name: "agent-" + name, Path: program, Args: []string{
			"proxy", kind, "--domain", namespace + ".svc.cluster.local",
			"--log_output_level=default:info",
		},
		Dir: a.Dir, Namespace: o.Namespace, UID: ProxyUID,
		Env: append([]string{
			"POD_NAME=" + name, "POD_NAMESPACE=" + namespace, "INSTANCE_IP=" + o.Address, "SERVICE_ACCOUNT=" + o.Account,
			"ISTIO_META_CLUSTER_ID=" + o.Cluster, "PROXY_CONFIG=" + string(config), "XDS_ROOT_CA=" + roots, "CA_ROOT_CA=" + roots,
			"ISTIO_META_INTERCEPTION_MODE=REDIRECT", "TRUST_DOMAIN=cluster.local",
		}, o.Env...),
	}
	if len(o.Hosts) > 0 {
		a.names(t, &run, o.Hosts)
	}
	a.Process = StartProgram(t, run)
	return a
}

// withHosts runs a program as a user with another /etc/hosts: FILE USER PROGRAM ARGUMENTS. The
// user need not be able to reach the program.
const withHosts = `mount --bind "$1" /etc/hosts && exec 4<"$3" && user=$2 && shift 3 &&
exec setpriv --reuid "$user" --regid "$user" --clear-groups /proc/self/fd/4 "$@"`

// names has the program find the addresses of names.
func (a *Agent) names(t testing.TB, run *ProgramOptions, hosts map[string]string) {
	t.Helper()
	text := "127.0.0.1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		text += hosts[name] + " " + name + "\n"
	}
	file := a.file(t, "etc/hosts", []byte(text))
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	run.Args = append([]string{"-m", "/bin/sh", "-c", withHosts, "sh", file, strconv.Itoa(run.UID), run.Path}, run.Args...)
	run.Path, run.UID = unshare, 0
}

// WaitReady returns when the agent says that the proxy takes traffic.
func (a *Agent) WaitReady(limit time.Duration) {
	a.t.Helper()
	ready := probe(a.namespace.Client(nil), "http://127.0.0.1:15021/healthz/ready")
	WaitFor(a.t, limit, a.options.Name+" to be ready", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return ready(ctx)
	})
}

// Stop ends the agent as a kubelet does and returns when it is gone: only the agent gets the signal, and lets its Envoy end
// the requests that it has. A request that is under way while Envoy itself gets the signal fails.
func (a *Agent) Stop() {
	if life := a.current(); life != nil && !life.over() && syscall.Kill(life.pid, syscall.SIGTERM) == nil {
		awaitEnd(a.Process)
	}
}

// SetToken replaces the token of the agent's account, as a kubelet does.
func (a *Agent) SetToken(token string) {
	a.t.Helper()
	a.file(a.t, "var/run/secrets/tokens/istio-token", []byte(token))
}

// Mount has the agent find files in a folder, as a kubelet mounts those of a Secret: their names are links through another
// link, with which a second call replaces all of them at once. It returns the path of the folder.
func (a *Agent) Mount(name string, files map[string][]byte) string {
	a.t.Helper()
	a.folder(a.t, name)
	at := filepath.Join(a.Dir, name)
	data, err := os.MkdirTemp(at, "..")
	if err != nil {
		a.t.Fatalf("mounting %s: %v", name, err)
	}
	data = filepath.Base(data)
	a.folder(a.t, filepath.Join(name, data))
	for file, content := range files {
		a.file(a.t, filepath.Join(name, data, file), content)
		err := os.Symlink(filepath.Join("..data", file), filepath.Join(at, file))
		if err != nil && !os.IsExist(err) {
			a.t.Fatalf("mounting %s: %v", name, err)
		}
	}
	err = os.Symlink(data, filepath.Join(at, "..next"))
	if err == nil {
		err = os.Rename(filepath.Join(at, "..next"), filepath.Join(at, "..data"))
	}
	if err != nil {
		a.t.Fatalf("mounting %s: %v", name, err)
	}
	return at
}

func (a *Agent) folder(t testing.TB, name string) {
	t.Helper()
	path := a.Dir
	for part := range strings.SplitSeq(name, "/") {
		path = filepath.Join(path, part)
		if err := os.Mkdir(path, 0o755); err != nil && !os.IsExist(err) {
			t.Fatalf("starting Istio's agent: %v", err)
		}
		if err := os.Chown(path, ProxyUID, ProxyUID); err != nil {
			t.Fatalf("starting Istio's agent: %v", err)
		}
	}
}

func (a *Agent) file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(a.Dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	if err := os.Chown(path, ProxyUID, ProxyUID); err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	return path
}

func (a *Agent) copied(t testing.TB, from string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	return a.file(t, filepath.Base(from), content)
}

// envoy is the program where the agent's user can run it.
func (a *Agent) envoy(t testing.TB) string {
	t.Helper()
	from, to := locate(t, toolset.Envoy), filepath.Join(a.Dir, "envoy")
	if os.Link(from, to) != nil { // on another file system
		a.copied(t, from)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatalf("starting Istio's agent: %v", err)
	}
	return to
}
