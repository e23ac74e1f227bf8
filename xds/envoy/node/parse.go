package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// What a node may say at most of what is used and kept. The rest is of no account:
// Envoy's own list of extensions has 60 KB, and annotations may have 256 KiB (R33).
const (
	maxNodeID        = 1024     // bytes
	maxNodeText      = 1024     // bytes of any other text that is used
	maxNodeLabels    = 64 << 10 // bytes of all labels
	maxNodeList      = 64 << 10 // bytes of a list in one text
	maxNodeAddresses = 64
)

// Given is what the hub knows of a proxy before it says anything, by its proof. The zero
// value: nothing.
type Given struct {
	Cluster        federation.ClusterID
	Namespace      string
	ServiceAccount string
	Address        netip.Addr // from which it connects
}

// ParseNode reads a node as Istio's proxies and plain Envoys send it (seeds 1.4
// and 5.2). Where a proxy's cluster is given, its ID may be any name, and what it does not
// say is what was given. Errors name the field.
func ParseNode(n *corev3.Node, given Given) (Node, error) {
	if n == nil {
		return Node{}, fmt.Errorf("reading the node: there is none; the first request of a stream must have one")
	}
	p := nodeParser{metadata: n.GetMetadata().GetFields(), given: given}
	p.readID(n.GetId())
	p.readMetadata()
	p.readEnvoyFields(n)
	p.node.Stats = p.node.Agent && hasStats(n.GetExtensions())
	p.readGRPC()
	p.finish()
	if p.err != nil {
		return Node{}, fmt.Errorf("reading the node: %w", p.err)
	}
	return p.node, nil
}

// nodeParser keeps the first error.
type nodeParser struct {
	metadata map[string]*structpb.Value
	node     Node
	given    Given
	idIP     string
	err      error
}

func (p *nodeParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// clean returns the text of a field, if it is fit for names and logs.
func (p *nodeParser) clean(field, text string, limit int) string {
	switch {
	case len(text) > limit:
		p.fail("%s has %d bytes, at most %d are taken", field, len(text), limit)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		p.fail("%s %q has control characters", field, text)
	default:
		return text
	}
	return ""
}

func (p *nodeParser) readID(id string) {
	id = p.clean("id", id, maxNodeID)
	if p.err != nil {
		return
	}
	if p.given.Cluster != "" && id != "" && !strings.Contains(id, "~") {
		p.node.ID, p.node.Type, p.node.Name = id, Sidecar, id+"."+p.given.Namespace
		p.idIP = p.given.Address.String()
		return
	}
	parts := strings.Split(id, "~")
	if len(parts) != 4 {
		p.fail("id %q has %d parts separated by ~, it needs four: TYPE~IP~NAME~DOMAIN", id, len(parts))
		return
	}
	p.node.ID, p.node.Type, p.idIP = id, Type(parts[0]), parts[1]
	p.node.Name, p.node.Domain = parts[2], strings.ToLower(parts[3])
	switch p.node.Type {
	case Sidecar, Ingress, Router:
	default:
		p.fail("id %q has the type %q; it must be sidecar, ingress or router", id, parts[0])
	}
}

func (p *nodeParser) readMetadata() {
	p.node.Cluster = cmp.Or(federation.ClusterID(p.text("CLUSTER_ID")), p.given.Cluster)
	p.node.Network = federation.NetworkID(p.text("NETWORK"))
	p.node.Namespace = cmp.Or(p.text("NAMESPACE"), p.given.Namespace)
	p.node.ServiceAccount = cmp.Or(p.text("SERVICE_ACCOUNT"), p.given.ServiceAccount)
	p.node.MeshVersion = p.text("ISTIO_VERSION")
	p.node.Metadata = shortTexts(p.metadata)
	p.node.RouterMode = Standard
	if p.node.Type != Sidecar && p.text("ROUTER_MODE") == string(SNIDNAT) {
		p.node.RouterMode = SNIDNAT
	}
	p.node.Labels = p.labels("LABELS")
	p.node.HTTPProxyPort = p.port("HTTP_PROXY_PORT")
	p.node.DNSCapture = p.boolean("DNS_CAPTURE")
	p.node.AgentNames = p.node.DNSCapture && p.node.Type == Sidecar && p.fromAgent()
	p.readIdentity()
	p.readStatNames()
	p.readSettings()
	p.node.Group = p.text("AUTO_REGISTER_GROUP")
	p.node.Entry = p.text("WORKLOAD_ENTRY")
	p.node.Probed = p.fields("PROXY_CONFIG")["readinessProbe"].GetStructValue() != nil
	p.readInterception()
	p.readAddresses()
	p.node.DualStack = isTrue(p.fields("PROXY_CONFIG")["proxyMetadata"].GetStructValue().GetFields()["ISTIO_DUAL_STACK"])
}

// readInterception reads how connections come to the proxy. As in Istio every other text means a redirection.
func (p *nodeParser) readInterception() {
	mode := p.text("INTERCEPTION_MODE")
	p.node.Capture = p.node.Type == Sidecar && !strings.EqualFold(mode, "NONE")
	p.node.Transparent = p.node.Capture && strings.EqualFold(mode, "TPROXY")
}

// fields reads a metadata value that has fields.
func (p *nodeParser) fields(key string) map[string]*structpb.Value {
	return p.metadata[key].GetStructValue().GetFields()
}

// text reads a metadata value that is a string, a number or a boolean.
func (p *nodeParser) text(key string) string {
	value, ok := p.metadata[key]
	if !ok {
		return ""
	}
	switch v := value.GetKind().(type) {
	case *structpb.Value_NullValue:
		return ""
	case *structpb.Value_StringValue:
		return p.clean("metadata "+key, v.StringValue, maxNodeText)
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(v.NumberValue, 'f', -1, 64)
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	}
	p.fail("metadata %s is a list or an object; a string is needed", key)
	return ""
}

// identityFromHub is the value of IDENTITY_SOURCE of proxies that get their
// identity from the hub, by SDS over ADS.
const identityFromHub = "ads"

// fromAgent reports whether Istio's agent started the proxy. The agent says where it serves
// the proxy's identity; older agents tell only which control plane they use (ADR 182).
func (p *nodeParser) fromAgent() bool {
	return p.text("WORKLOAD_IDENTITY_SOCKET_FILE") != "" || p.fields("PROXY_CONFIG")["discoveryAddress"].GetStringValue() != ""
}

// readIdentity reads where the proxy has its identity from: the hub, or the agent
// of Istio that started it, which serves it at a socket and says so. Without either
// it neither offers nor takes mutual TLS of the mesh.
func (p *nodeParser) readIdentity() {
	switch source := p.text("IDENTITY_SOURCE"); source {
	case "":
		p.node.Agent = p.fromAgent()
		p.node.Identity = p.node.Agent
	case identityFromHub:
		p.node.Identity = true
	default:
		p.fail("metadata IDENTITY_SOURCE %q is not a source of identities; it must be %s, or absent", source, identityFromHub)
	}
}

// delimited is the value of STAT_NAMES of proxies whose bootstrap takes the names of clusters and listeners
// out of those of statistics, and finds their ends by a semicolon.
const delimited = "delimited"

// readStatNames reads whether names in the proxy's statistics have delimiters. The bootstraps of Istio's agents
// look for them since before the agents say where they serve the proxy's identity.
func (p *nodeParser) readStatNames() {
	switch said := p.text("STAT_NAMES"); said {
	case "":
		p.node.Delimited = p.text("WORKLOAD_IDENTITY_SOCKET_FILE") != ""
	case delimited:
		p.node.Delimited = true
	default:
		p.fail("metadata STAT_NAMES %q is not known; it must be %s, or absent", said, delimited)
	}
}

func (p *nodeParser) port(key string) uint16 {
	text := p.text(key)
	if text == "" || text == "0" {
		return 0
	}
	port, ok := resource.ParsePort(text)
	switch {
	case !ok:
		p.fail("metadata %s %q is not a port; use 1 to 65535", key, text)
	case port == resource.OutboundPort || port == resource.InboundPort:
		p.fail("metadata %s %d is a port of the capture; use another", key, port)
	}
	return port
}

func (p *nodeParser) boolean(key string) bool {
	text := p.text(key)
	if text == "" {
		return false
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		p.fail("metadata %s %q is neither true nor false", key, text)
	}
	return value
}

func (p *nodeParser) labels(key string) map[string]string {
	value, ok := p.metadata[key]
	if _, null := value.GetKind().(*structpb.Value_NullValue); !ok || null {
		return nil
	}
	if value.GetStructValue() == nil {
		p.fail("metadata %s is not an object of strings", key)
		return nil
	}
	labels, size := map[string]string{}, 0
	for name, v := range value.GetStructValue().GetFields() {
		size += len(name) + len(v.GetStringValue())
		if size > maxNodeLabels {
			p.fail("metadata %s has more than %d bytes", key, maxNodeLabels)
			return nil
		}
		text, ok := v.GetKind().(*structpb.Value_StringValue)
		if !ok {
			p.fail("metadata %s: the label %q is not a string", key, name)
			return nil
		}
		labels[p.clean("metadata "+key+": a name", name, maxNodeText)] = p.clean("metadata "+key+": the label "+name,
			text.StringValue, maxNodeText)
	}
	return labels
}

// readAddresses takes the valid addresses of the metadata, else that of the ID.
func (p *nodeParser) readAddresses() {
	for _, text := range p.addressTexts("INSTANCE_IPS") {
		if len(p.node.Addresses) > maxNodeAddresses {
			break
		}
		p.addAddress(text)
	}
	if len(p.node.Addresses) == 0 {
		p.addAddress(p.idIP)
	}
	switch {
	case len(p.node.Addresses) == 0:
		p.fail("neither metadata INSTANCE_IPS nor the second part of id, %q, has a valid IP address", p.idIP)
	case len(p.node.Addresses) > maxNodeAddresses:
		p.fail("metadata INSTANCE_IPS has more than %d addresses", maxNodeAddresses)
	}
}

// addressTexts reads a comma list or a list of strings.
func (p *nodeParser) addressTexts(key string) []string {
	list := p.metadata[key].GetListValue()
	if list == nil {
		return strings.Split(p.longText(key), ",")
	}
	var texts []string
	for _, v := range list.GetValues() {
		texts = append(texts, v.GetStringValue())
	}
	return texts
}

func (p *nodeParser) longText(key string) string {
	if s, ok := p.metadata[key].GetKind().(*structpb.Value_StringValue); ok {
		return p.clean("metadata "+key, s.StringValue, maxNodeList)
	}
	return p.text(key)
}

func (p *nodeParser) addAddress(text string) {
	addr, err := netip.ParseAddr(strings.TrimSpace(text))
	addr = addr.Unmap()
	if err == nil && addr.Zone() == "" && !addr.IsUnspecified() && !slices.Contains(p.node.Addresses, addr) {
		p.node.Addresses = append(p.node.Addresses, addr)
	}
}

func (p *nodeParser) readEnvoyFields(n *corev3.Node) {
	p.node.Locality = federation.Locality{
		Region:  p.clean("locality.region", n.GetLocality().GetRegion(), maxNodeText),
		Zone:    p.clean("locality.zone", n.GetLocality().GetZone(), maxNodeText),
		SubZone: p.clean("locality.sub_zone", n.GetLocality().GetSubZone(), maxNodeText),
	}
	p.node.UserAgent = p.clean("user_agent_name", n.GetUserAgentName(), maxNodeText)
	p.node.Version = p.clean("user_agent_version", n.GetUserAgentVersion(), maxNodeText)
	if v := n.GetUserAgentBuildVersion().GetVersion(); p.node.Version == "" && v != nil {
		p.node.Version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
}

// readGRPC tells gRPC libraries from proxies.
func (p *nodeParser) readGRPC() {
	if strings.HasPrefix(p.node.UserAgent, "gRPC") || strings.EqualFold(p.text("GENERATOR"), "grpc") {
		p.node.GRPC, p.node.Capture, p.node.HTTPProxyPort = true, false, 0
		p.node.Transparent = false
		p.node.Identity, p.node.Agent, p.node.AgentNames = false, false, false
		p.node.Stats, p.node.Delimited = false, false
	}
}

// finish fills in values from other places. On Kubernetes the name ends
// with the namespace, and the domain begins with it.
func (p *nodeParser) finish() {
	if p.node.Namespace != "" {
		return
	}
	if _, namespace, ok := strings.Cut(p.node.Name, "."); ok {
		p.node.Namespace = namespace[strings.LastIndexByte(namespace, '.')+1:]
		return
	}
	if namespace, rest, ok := strings.Cut(p.node.Domain, "."); ok && strings.HasPrefix(rest, "svc.") {
		p.node.Namespace = namespace
	}
}
