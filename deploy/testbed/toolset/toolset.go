// Package toolset lists the real programs that the tests run, the pinned inputs from which
// each is built, and where they are installed.
package toolset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Names of the tools.
const (
	Etcd          = "etcd"
	Etcdctl       = "etcdctl" // what operators of etcd type
	Etcdutl       = "etcdutl"
	KubeAPIServer = "kube-apiserver"
	Kubectl       = "kubectl"
	Consul        = "consul"
	Envoy         = "envoy"
	PilotAgent    = "pilot-agent" // Istio's own agent, unmodified
	Istioctl      = "istioctl"    // Istio's command line, unmodified

	PilotDiscovery = "pilot-discovery" // istiod, unmodified
	Promtool       = "promtool"        // evaluates rules and queries of Prometheus
)

// Files of Istio's module that are installed beside its programs.
const (
	// AgentTemplate is of what Istio's agent makes Envoy's bootstrap.
	AgentTemplate = "tools/packaging/common/envoy_bootstrap.json"
	// Istio's dashboards for Grafana: of istiod, and of what proxies count.
	ControlPlaneDashboard = dashboards + "pilot-dashboard.gen.json"
	WorkloadDashboard     = dashboards + "istio-workload-dashboard.json"
	ServiceDashboard      = dashboards + "istio-service-dashboard.json"
	MeshDashboard         = dashboards + "istio-mesh-dashboard.gen.json"
	PerformanceDashboard  = dashboards + "istio-performance-dashboard.json"

	dashboards = "manifests/addons/dashboards/"
)

// BuildFlags says how tools are built from source; it is part of their key.
const BuildFlags = "-mod=readonly -trimpath -buildvcs=false -ldflags=-s -w"

// Room is the folder of the testbed below the root of the repository.
const Room = "deploy/testbed"

// A Tool is one program and the pinned inputs that it is made from.
type Tool struct {
	Name    string
	Package string   // The Go package to build, empty if the tool is not built.
	Module  string   // The nested module that pins Package, below Room.
	Tags    string   // The build tags of Package, divided by commas.
	Inputs  []string // The files, below Room, that decide what is installed.
	About   string   // How long the first installation takes.
	// Beside are files of the package's module that are installed beside the tool.
	Beside []string
}

// All returns every tool, the quick ones first.
func All() []Tool {
	kubernetes := []string{"kubernetes/go.mod", "kubernetes/go.sum"}
	etcdctl := []string{"etcdctl/go.mod", "etcdctl/go.sum"}
	kubectl := []string{"kubectl/go.mod", "kubectl/go.sum"}
	consul := []string{"consul/go.mod", "consul/go.sum"}
	istio := []string{"istio/go.mod", "istio/go.sum"}
	istioctl := []string{"istioctl/go.mod", "istioctl/go.sum"}
	prometheus := []string{"prometheus/go.mod", "prometheus/go.sum"}
	return []Tool{
		{Name: Envoy, Inputs: []string{"requirements.txt"}, About: "a download of about 40 MB"},
		{Name: Etcd, Package: "go.etcd.io/etcd/server/v3", Module: "kubernetes", Inputs: kubernetes, About: "about 1 minute"},
		{Name: Etcdctl, Package: "go.etcd.io/etcd/etcdctl/v3", Module: "etcdctl", Inputs: etcdctl, About: "about 1 minute"},
		{Name: Etcdutl, Package: "go.etcd.io/etcd/etcdutl/v3", Module: "etcdctl", Inputs: etcdctl, About: "about 1 minute"},
		{
			Name: KubeAPIServer, Package: "k8s.io/kubernetes/cmd/kube-apiserver", Module: "kubernetes",
			Inputs: kubernetes, About: "about 3 minutes",
		},
		{Name: Kubectl, Package: "k8s.io/kubernetes/cmd/kubectl", Module: "kubectl", Inputs: kubectl, About: "about 3 minutes"},
		{Name: Consul, Package: "github.com/hashicorp/consul", Module: "consul", Inputs: consul, About: "about 5 minutes"},
		{
			Name: PilotAgent, Package: "istio.io/istio/pilot/cmd/pilot-agent", Module: "istio", Inputs: istio, About: "about 3 minutes",
			Beside: []string{AgentTemplate},
		},
		{Name: Istioctl, Package: "istio.io/istio/istioctl/cmd/istioctl", Module: "istioctl", Inputs: istioctl, About: "about 5 minutes"},
		{
			Name: PilotDiscovery, Package: "istio.io/istio/pilot/cmd/pilot-discovery", Module: "istio", Inputs: istio, About: "about 3 minutes",
			Beside: []string{ControlPlaneDashboard, WorkloadDashboard, ServiceDashboard, MeshDashboard, PerformanceDashboard},
		},
		// Without the discovery of targets, which is half of the program: rules do not need it.
		{
			Name: Promtool, Package: "github.com/prometheus/prometheus/cmd/promtool", Module: "prometheus", Inputs: prometheus,
			About: "about 3 minutes", Tags: "remove_all_sd",
		},
	}
}

// Cache returns the folder that holds the installed tools. It is shared by all
// clones of one user; ISTHMUS_TOOLS_DIR names another.
func Cache() (string, error) {
	if dir := os.Getenv("ISTHMUS_TOOLS_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w; set ISTHMUS_TOOLS_DIR", err)
	}
	return filepath.Join(dir, "isthmus-tools"), nil
}

// Root returns the root of the repository that holds the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, Room, "requirements.txt")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the repository: no " + Room + " in the working directory or above it")
		}
		dir = parent
	}
}

// Dir returns the folder of one tool below cache. Its name changes with every
// input, the Go version, the platform and the build flags.
func (t Tool) Dir(root, cache string) (string, error) {
	hash := sha256.New()
	if t.Package != "" {
		fmt.Fprintln(hash, t.Package, BuildFlags, runtime.Version())
	}
	if t.Tags != "" {
		fmt.Fprintln(hash, t.Tags)
	}
	for _, name := range t.Beside {
		fmt.Fprintln(hash, name)
	}
	fmt.Fprintln(hash, runtime.GOOS, runtime.GOARCH)
	for _, input := range t.Inputs {
		if err := addFile(hash, filepath.Join(root, Room, input)); err != nil {
			return "", fmt.Errorf("computing the key of %s: %w", t.Name, err)
		}
	}
	key := hex.EncodeToString(hash.Sum(nil))[:16]
	return filepath.Join(cache, t.Name+"-"+key), nil
}

// Locate returns the path of one tool, which it need not have, and whether it
// is installed for the pinned inputs of this checkout.
func Locate(name string) (path string, installed bool, err error) {
	root, err := Root()
	if err != nil {
		return "", false, err
	}
	cache, err := Cache()
	if err != nil {
		return "", false, err
	}
	for _, tool := range All() {
		if tool.Name != name {
			continue
		}
		dir, err := tool.Dir(root, cache)
		if err != nil {
			return "", false, err
		}
		path = filepath.Join(dir, name)
		_, err = os.Stat(path)
		return path, err == nil, nil
	}
	return "", false, fmt.Errorf("no tool is called %q", name)
}

// Verify compares an installed tool in dir with the checksum that was written
// beside it.
func (t Tool) Verify(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, "sha256"))
	if err != nil {
		return fmt.Errorf("verifying %s: %w", t.Name, err)
	}
	got, err := Checksum(filepath.Join(dir, t.Name))
	if err != nil {
		return fmt.Errorf("verifying %s: %w", t.Name, err)
	}
	if strings.TrimSpace(string(want)) != got {
		return fmt.Errorf("verifying %s: its checksum is %s, not %s", t.Name, got, strings.TrimSpace(string(want)))
	}
	return nil
}

// Checksum returns the SHA-256 of a file in hexadecimal digits.
func Checksum(path string) (string, error) {
	hash := sha256.New()
	if err := addFile(hash, path); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func addFile(to io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
