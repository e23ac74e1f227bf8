package testbed

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// IstiodName is the name in istiod's certificate; agents need it as ISTIOD_SAN.
const IstiodName = "istiod.istio-system.svc"

// IstiodOptions say how istiod is run.
type IstiodOptions struct {
	Namespace *Namespace
	Address   string // Of the namespace, where it serves.
	Kube      *Kube  // Whose services it serves, and whose tokens it reviews.
	CA        string // The folder with ca-cert.pem, ca-key.pem, root-cert.pem and cert-chain.pem.
	Mesh      string // Text of its MeshConfig, YAML.
	Filters   bool   // It sends the filters that Istio's proxies have and Envoy as it is released lacks.
}

// Istiod is istiod, unmodified.
type Istiod struct {
	*Process
	XDS string // HOST:PORT, with TLS.
}

// StartIstiod runs istiod and returns when it is ready: it has read its cluster and its
// configuration.
func StartIstiod(t testing.TB, o IstiodOptions) *Istiod {
	t.Helper()
	program := locate(t, toolset.PilotDiscovery)
	o.Kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: istio-system\n")
	dir, filters := t.TempDir(), strconv.FormatBool(o.Filters)
	ready := probe(o.Namespace.Client(nil), fmt.Sprintf("http://%s:8080/ready", o.Address))
	i := &Istiod{XDS: o.Address + ":15012"}
	i.Process = StartProgram(t, ProgramOptions{
		Name: "istiod", Path: program, Dir: dir, Namespace: o.Namespace, Ready: ready,
		Args: []string{
			"discovery", "--kubeconfig", writeFile(t, dir, "kubeconfig", o.Kube.Kubeconfig()),
			"--meshConfig", writeFile(t, dir, "mesh", []byte(o.Mesh)),
			"--networksConfig", filepath.Join(dir, "none"), "--namespace", "istio-system", "--clusterID", "Kubernetes", "--httpsAddr", "",
			"--httpAddr", o.Address + ":8080", "--grpcAddr", o.Address + ":15010",
			"--secureGRPCAddr", i.XDS, "--monitoringAddr", o.Address + ":15014",
		},
		Env: []string{
			"POD_NAME=istiod-1", "POD_NAMESPACE=istio-system", "ROOT_CA_DIR=" + o.CA, "VALIDATION_WEBHOOK_CONFIG_NAME=",
			"INJECTION_WEBHOOK_CONFIG_NAME=",
			"PILOT_ENABLE_ALPN_FILTER=" + filters, "PILOT_ENABLE_METADATA_EXCHANGE=" + filters, "PILOT_ENABLE_TELEMETRY_LABEL=" + filters,
		},
	})
	return i
}

// Folder writes what a control plane signs with: the authority's own certificate and key.
func (a *Authority) Folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ca-cert.pem", "root-cert.pem", "cert-chain.pem"} {
		writeFile(t, dir, name, a.PEM)
	}
	writeFile(t, dir, "ca-key.pem", encodeKey(t, a.key))
	return dir
}
