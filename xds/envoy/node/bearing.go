package node

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// SidecarKind is the kind of Sidecars.
var SidecarKind = federation.Kind{Group: "networking.istio.io", Name: "Sidecar"}

// bearing is the effective configuration of a proxy as a whole.
type bearing struct {
	egress   string
	inbound  string // the Sidecar that says how the workload is reached
	labels   string
	priority string // the labels by which endpoints are ordered
	outbound federation.OutboundMode
	own      bool // the namespace has rules of its own about services
	// network is where Network objects put the proxy; empty: they do not.
	network federation.NetworkID
	ports   string // where a gateway listens for ports of its services
	// objects is the proxy's cluster where there are objects for its proxies alone.
	objects federation.ClusterID
	// telemetry and traced are those of the proxy's facets.
	telemetry, traced string
	patches           patchLists
}

func bearingOn(n Node, r *federation.Reader) bearing {
	keys := r.Objects().ProxyLabels()
	c := bearing{labels: projected(n.Labels, keys), priority: projected(n.Labels, destinationrule.PriorityLabels(keys))}
	if n.Cluster != "" && r.Objects().HasOf(n.Cluster) {
		c.objects = n.Cluster
	}
	if id, placed := r.At(n.Place()).Placed(); placed {
		c.network = id
	}
	c.ports = n.listenPorts(c, r)
	mesh := r.Mesh()
	if mesh != nil {
		c.outbound = mesh.OutboundTrafficPolicy.Mode
	}
	c.telemetry = telemetryOf(n, r, mesh)
	if c.telemetry != "" && tracesByName(mesh) {
		c.traced = n.serviceName()
	}
	c.patches = patchesFor(n, c.labels, r, mesh)
	c.own = destinationrule.HasOwn(n.Namespace, r) || virtualservice.HasOwnConnections(n.Namespace, r)
	sidecar := SidecarOf(n, r, mesh.Root())
	if sidecar != nil {
		c.egress = egressOf(sidecar.Spec.(*networking.Sidecar), n.Namespace)
		c.inbound = inboundOf(sidecar)
		if policy := sidecar.Spec.(*networking.Sidecar).GetOutboundTrafficPolicy(); policy != nil {
			c.outbound = federation.OutboundMode(policy.GetMode().String())
		}
	}
	if c.outbound == federation.AllowAny {
		c.outbound = ""
	}
	return c
}

// projected are the labels of the given keys, which are sorted.
func projected(labels map[string]string, keys []string) string {
	var parts []string
	for _, key := range keys {
		if value, has := labels[key]; has {
			parts = append(parts, key+"="+value)
		}
	}
	return strings.Join(parts, ",")
}

// label returns the proxy's label where it is one that decides about anything.
func (f Facet) label(key string) (string, bool) {
	return labelIn(f.Labels, key)
}

// PriorityLabel is the proxy's label where it is one by which endpoints are ordered; else
// empty.
func (f Facet) PriorityLabel(key string) string {
	value, _ := labelIn(f.Priority, key)
	return value
}

// labelIn looks for a label in a list of projected ones.
func labelIn(list, key string) (string, bool) {
	for part := range strings.SplitSeq(list, ",") {
		if value, is := strings.CutPrefix(part, key+"="); is {
			return value, true
		}
	}
	return "", false
}

// HasLabels reports whether the proxy carries all of the labels.
func (f Facet) HasLabels(want map[string]string) bool {
	for key, value := range want {
		if have, has := f.label(key); !has || have != value {
			return false
		}
	}
	return true
}

// SidecarOf finds the Sidecar for the proxy: of its namespace the one that
// selects it, else the one that selects nobody, else that of the root
// namespace; the oldest where there are several.
func SidecarOf(n Node, r *federation.Reader, root string) *federation.Object {
	if n.Type != Sidecar {
		return nil
	}
	selecting, general := oldestSidecars(r.Objects().In(SidecarKind, n.Namespace), n.Labels)
	if selecting != nil {
		return selecting
	}
	if general == nil && n.Namespace != root {
		_, general = oldestSidecars(r.Objects().In(SidecarKind, root), n.Labels)
	}
	return general
}

func oldestSidecars(all iter.Seq[*federation.Object], labels map[string]string) (selecting, general *federation.Object) {
	for o := range all {
		spec, ok := o.Spec.(*networking.Sidecar)
		if !ok {
			continue
		}
		selector := spec.GetWorkloadSelector().GetLabels()
		switch {
		case len(selector) == 0 && (general == nil || o.Older(general)):
			general = o
		case len(selector) > 0 && federation.MatchesLabels(labels, []map[string]string{selector}) && (selecting == nil || o.Older(selecting)):
			selecting = o
		}
	}
	return selecting, general
}

// egressOf is what the Sidecar imports for a proxy of the namespace. A Sidecar
// without egress imports everything. What a listener excludes is not imported by
// that listener; another one may import it.
func egressOf(spec *networking.Sidecar, namespace string) string {
	if len(spec.GetEgress()) == 0 {
		return ""
	}
	var plain, lists, ofPorts []string
	for _, listener := range spec.GetEgress() {
		included, excluded := egressHosts(listener.GetHosts(), namespace)
		switch port := exposedPort(listener); {
		case port != 0:
			ofPorts = append(ofPorts, fmt.Sprintf("%d:%s", port, egressList(append(included, excluded...))))
		case len(included) == 0:
		case len(excluded) == 0:
			plain = append(plain, included...)
		default:
			lists = append(lists, egressList(append(included, excluded...)))
		}
	}
	if slices.Contains(plain, "*/*") {
		if len(ofPorts) == 0 {
			return ""
		}
		plain = []string{"*/*"}
	}
	if len(plain) > 0 {
		lists = append([]string{egressList(plain)}, lists...)
	}
	lists = append(lists, ofPorts...)
	if len(lists) == 0 {
		return "~*/*" // nothing
	}
	return strings.Join(lists, ";")
}

// exposedPort is the port for which the listener is; 0: it is for all that have none of their own.
// Services have nothing to do with the port of an explicit HTTP proxy.
func exposedPort(listener *networking.IstioEgressListener) uint16 {
	number := listener.GetPort().GetNumber()
	if strings.EqualFold(listener.GetPort().GetProtocol(), "HTTP_PROXY") || number != uint32(uint16(number)) {
		return 0
	}
	return uint16(number)
}

// egressHosts reads NAMESPACE/HOST; a namespace after ~ excludes, ~ alone from all of
// them.
func egressHosts(hosts []string, own string) (included, excluded []string) {
	for _, text := range hosts {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok {
			namespace, name = "*", text
		}
		namespace, excludes := strings.CutPrefix(namespace, "~")
		switch namespace {
		case ".":
			namespace = own
		case "":
			namespace = "*"
		}
		if host := namespace + "/" + strings.ToLower(name); excludes {
			excluded = append(excluded, "~"+host)
		} else {
			included = append(included, host)
		}
	}
	return included, excluded
}

func egressList(hosts []string) string {
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), ",")
}
