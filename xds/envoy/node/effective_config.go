package node

import (
	"iter"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// effectiveConfig is the effective configuration of a proxy as a whole.
type effectiveConfig struct {
	// imports is what the Sidecar of the proxy imports, and egress that with the destinations of routes.
	imports, egress string

	inbound     string // the Sidecar that says how the workload is reached
	bound       string // the Sidecar that has listeners of their own for what the workload sends
	labels      string
	priority    string // the labels by which endpoints are ordered
	outbound    federation.OutboundMode
	egressProxy egressProxy
	own         bool // the namespace has rules of its own about services
	// network is where Network objects put the proxy; empty: they do not.
	network federation.NetworkID
	ports   gatewayPorts // where a gateway listens for ports of its services
	// objects is the proxy's cluster where there are objects for its proxies alone.
	objects federation.ClusterID
	// telemetry and traced are those of the proxy's facets.
	telemetry, traced string
	patches           patchLists
	certificate       string // that a gateway presents to backends
}

// effectiveConfigOf is that of a node that has its labels of topology.
func effectiveConfigOf(n Node, r *federation.Reader) effectiveConfig {
	keys := r.Objects().ProxyLabels()
	c := effectiveConfig{labels: projected(n.Labels, keys), priority: projected(n.Labels, destinationrule.PriorityLabels(keys))}
	if n.Cluster != "" && r.Objects().HasOf(n.Cluster) {
		c.objects = n.Cluster
	}
	if id, placed := r.At(n.Place()).Placed(); placed {
		c.network = id
	}
	mesh := r.Mesh()
	c.ports = n.listenPorts(c, r, mesh.WantsQUIC())
	if mesh != nil {
		c.outbound = mesh.OutboundTrafficPolicy.Mode
	}
	c.certificate = certificateOf(n, r)
	c.telemetry = telemetryOf(n, r, mesh)
	if c.telemetry != "" && tracesByName(mesh) {
		c.traced = n.serviceName()
	}
	c.patches = patchesFor(n, c.labels, r, mesh)
	c.own = destinationrule.HasOwn(n.Namespace, r) || virtualservice.HasOwnConnections(n.Namespace, r)
	sidecar := sidecarOf(n, r, mesh.Root())
	if sidecar != nil {
		c.imports, c.bound = egressOf(n, sidecar), boundOf(n, sidecar)
		c.egress = withDestinations(c.imports, n.Namespace, r)
		c.inbound = inboundOf(sidecar)
		if policy := sidecar.Spec.(*networking.Sidecar).GetOutboundTrafficPolicy(); policy != nil {
			c.outbound = federation.OutboundMode(policy.GetMode().String())
			c.egressProxy = egressProxyOf(n, c, sidecar, r)
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
	value, _ := labelIn(f.Extras().Priority, key)
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
	return sidecarOf(n.withTopology(r), r, root)
}

func sidecarOf(n Node, r *federation.Reader, root string) *federation.Object {
	if n.Type != Sidecar {
		return nil
	}
	selecting, general := oldestSidecars(r.Objects().In(federation.SidecarKind, n.Namespace), n.Labels)
	if selecting != nil {
		return selecting
	}
	if general == nil && n.Namespace != root {
		_, general = oldestSidecars(r.Objects().In(federation.SidecarKind, root), n.Labels)
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
