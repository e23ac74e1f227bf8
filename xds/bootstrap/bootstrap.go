// Package bootstrap generates Envoy bootstraps: the node, the address of the hub, and
// limits that protect Envoy from overload. Everything else comes from the hub.
package bootstrap

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

// Kind is what the proxy is for.
type Kind string

// The kinds.
const (
	Sidecar Kind = "sidecar"  // beside a workload
	Gateway Kind = "gateway"  // stand-alone, of the listeners of Gateways
	SNIDNAT Kind = "sni-dnat" // the entry of a network
)

// Options say what a bootstrap is for. Fields without a default are required.
type Options struct {
	Kind           Kind
	Name           string // on Kubernetes that of the pod
	Namespace      string
	ServiceAccount string // default "default"
	Cluster        string // the ID under which the hub has the cluster
	Network        string // default: that of the cluster
	Addresses      []netip.Addr
	Labels         map[string]string
	Region         string
	Zone           string
	SubZone        string

	Hub     Endpoint
	HubName string // that the hub's certificate must have; default: the host of Hub
	// The files of mutual TLS with the hub; all empty: plaintext.
	HubCA, Certificate, Key string
	// Secrets is the folder into which SecretFiles are written; empty: the files of
	// mutual TLS are read once, at the start.
	Secrets string

	Admin          Endpoint // loopback address or socket; default: none
	NoCapture      bool     // the workload's connections are not redirected
	HTTPProxyPort  uint16   // 0: none
	DNSCapture     bool
	NoIdentity     bool   // the proxy gets no certificate from the hub, and speaks plain text
	MaxHeap        uint64 // bytes; default 1 GiB
	MaxConnections uint64 // from downstream; default 50,000
}

// Endpoint is a host with a port, or a unix socket.
type Endpoint struct {
	Host string
	Port uint16
	Path string // of the socket
}

// Defaults of limits.
const (
	defaultHeap        = 1 << 30
	defaultConnections = 50_000
)

// Build makes the bootstrap. Its error has a line for everything that is wrong, which begins
// with the flags of "isthmus proxy bootstrap" that it is about.
func Build(o Options) (*bootstrapv3.Bootstrap, error) {
	o.fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &bootstrapv3.Bootstrap{
		Node:             o.node(),
		DynamicResources: dynamicResources(),
		HdsConfig:        o.healthService(),
		StaticResources:  o.staticResources(),
		OverloadManager:  o.overloadManager(),
		LayeredRuntime:   runtime(),
		StatsConfig:      &metricsv3.StatsConfig{StatsTags: statsTags()},
	}
	if o.Admin != (Endpoint{}) {
		b.Admin = &bootstrapv3.Admin{Address: o.Admin.address()}
	}
	return b, nil
}

func (o *Options) fill() {
	if o.ServiceAccount == "" {
		o.ServiceAccount = "default"
	}
	if o.HubName == "" {
		o.HubName = o.Hub.Host
	}
	if o.MaxHeap == 0 {
		o.MaxHeap = defaultHeap
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
}

func (o *Options) check() error {
	var wrong []error
	need := func(flags string, ok bool, what string) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s: %s", flags, what))
		}
	}
	need("--type", slices.Contains([]Kind{Sidecar, Gateway, SNIDNAT}, o.Kind), "use sidecar, gateway or sni-dnat")
	for flag, value := range map[string]string{"--name": o.Name, "--namespace": o.Namespace, "--cluster-id": o.Cluster} {
		need(flag, value != "" && !strings.ContainsAny(value, "~ \n"), "is missing, or has a ~ or a blank")
	}
	need("--ip", len(o.Addresses) > 0, "name an address of the workload")
	complete := o.Hub.Path != "" || o.Hub.Host != "" && o.Hub.Port != 0
	need("--hub", complete, "use HOST:PORT or unix:PATH")
	files := 0
	for _, file := range []string{o.HubCA, o.Certificate, o.Key} {
		if file != "" {
			files++
		}
	}
	need("--hub-ca, --cert, --key", files == 0 || files == 3, "give all three for mutual TLS, or none for a hub with --dev")
	need("--hub", files > 0 || !complete || o.Hub.local(),
		"plaintext goes to a loopback address or a socket only; give --hub-ca, --cert and --key")
	need("--admin", o.Admin == (Endpoint{}) || o.Admin.local(),
		"use a loopback address, unix:PATH or none: every client that reaches it can do everything")
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

// local reports whether the endpoint can only be reached from this machine.
func (e Endpoint) local() bool {
	ip, err := netip.ParseAddr(e.Host)
	return e.Path != "" || e.Host == "localhost" || err == nil && ip.IsLoopback()
}

func (e Endpoint) address() *corev3.Address {
	if e.Path != "" {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: e.Path, Mode: 0o600}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: e.Host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(e.Port)},
	}}}
}

// node says who the proxy is, as Istio's proxies do.
func (o *Options) node() *corev3.Node {
	var addresses []string
	for _, a := range o.Addresses {
		addresses = append(addresses, a.String())
	}
	said := map[string]any{
		"CLUSTER_ID": o.Cluster, "NAMESPACE": o.Namespace, "SERVICE_ACCOUNT": o.ServiceAccount, "INSTANCE_IPS": strings.Join(addresses, ","),
		"STAT_NAMES": "delimited",
	}
	kind := "router"
	switch o.Kind {
	case Sidecar:
		kind = "sidecar"
		said["INTERCEPTION_MODE"] = "REDIRECT"
		if o.NoCapture {
			said["INTERCEPTION_MODE"] = "NONE"
		}
	case SNIDNAT:
		said["ROUTER_MODE"] = "sni-dnat"
	}
	if o.Network != "" {
		said["NETWORK"] = o.Network
	}
	if !o.NoIdentity {
		said["IDENTITY_SOURCE"] = "ads"
	}
	if o.DNSCapture {
		said["DNS_CAPTURE"] = "true"
	}
	if o.HTTPProxyPort != 0 {
		said["HTTP_PROXY_PORT"] = fmt.Sprint(o.HTTPProxyPort)
	}
	metadata := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for key, value := range said {
		metadata.Fields[key] = structpb.NewStringValue(value.(string))
	}
	if len(o.Labels) > 0 {
		labels := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
			labels.Fields[key] = structpb.NewStringValue(o.Labels[key])
		}
		metadata.Fields["LABELS"] = structpb.NewStructValue(labels)
	}
	n := &corev3.Node{
		Id:      strings.Join([]string{kind, o.Addresses[0].String(), o.Name + "." + o.Namespace, o.Namespace + ".svc.cluster.local"}, "~"),
		Cluster: o.ServiceAccount + "." + o.Namespace, Metadata: metadata,
	}
	if o.Region != "" {
		n.Locality = &corev3.Locality{Region: o.Region, Zone: o.Zone, SubZone: o.SubZone}
	}
	return n
}

// statsTags make tags of the names of clusters and listeners, as Istio's bootstrap calls them. The hub has a semicolon end
// each: Envoy's own tags end at the first dot, and would leave the rest of a host in the name of the metric.
func statsTags() (tags []*metricsv3.TagSpecifier) {
	for _, t := range [][2]string{{"cluster_name", `^cluster(\.(.+);)`}, {"http_conn_manager_prefix", `^http(\.(.+);)`}} {
		tags = append(tags, &metricsv3.TagSpecifier{TagName: t[0], TagValue: &metricsv3.TagSpecifier_Regex{Regex: t[1]}})
	}
	return tags
}

// SecretFiles are the files that the folder Secrets must have, by name: Envoy reloads
// the files of mutual TLS when they change.
func SecretFiles(o Options) (map[string][]byte, error) {
	if o.Secrets == "" || o.Certificate == "" {
		return nil, nil
	}
	files := map[string][]byte{}
	for name, secret := range o.fileSecrets() {
		text, err := YAML(secret)
		if err != nil {
			return nil, err
		}
		text = append(fmt.Appendf(nil, "\"@type\": type.googleapis.com/%s\n", secret.ProtoReflect().Descriptor().FullName()), text...)
		files[name] = []byte("resources:\n- " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ") + "\n")
	}
	return files, nil
}

func (o *Options) secretFile(name string) string { return filepath.Join(o.Secrets, name) }

// YAML prints a message as Envoy reads it.
func YAML(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("printing the bootstrap: %w", err)
	}
	return yaml.JSONToYAML(text)
}
