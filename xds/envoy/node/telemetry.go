package node

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	telemetry "istio.io/api/telemetry/v1alpha1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
)

// onlyDefaults is the telemetry of proxies for which no object is, where MeshSettings name
// providers.
const onlyDefaults = "-"

// telemetryOf names the Telemetry objects for the proxy, from the root namespace to the
// workload; of each level the oldest counts.
func telemetryOf(n Node, r *federation.Reader, mesh *federation.MeshSettings) string {
	var names []string
	add := func(o *federation.Object) {
		if o != nil {
			names = append(names, o.Key.Namespace+"/"+o.Key.Name)
		}
	}
	selecting, general := oldestTelemetry(r.Objects().In(federation.TelemetryKind, n.Namespace), n.Labels)
	if root := mesh.Root(); root != n.Namespace {
		_, all := oldestTelemetry(r.Objects().In(federation.TelemetryKind, root), nil)
		add(all)
	}
	add(general)
	add(selecting)
	if len(names) == 0 && len(mesh.Logs())+len(mesh.Traces()) > 0 {
		return onlyDefaults
	}
	return strings.Join(names, ",")
}

func oldestTelemetry(all iter.Seq[*federation.Object], labels map[string]string) (selecting, general *federation.Object) {
	for o := range all {
		spec, ok := o.Spec.(*telemetry.Telemetry)
		if !ok {
			continue
		}
		targets := spec.GetTargetRefs()
		if spec.GetTargetRef() != nil {
			targets = append([]*selection.PolicyTargetReference{spec.GetTargetRef()}, targets...)
		}
		wanted := []map[string]string{spec.GetSelector().GetMatchLabels()}
		if len(targets) > 0 {
			wanted = nil
		}
		for _, t := range targets {
			if federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
				wanted = append(wanted, map[string]string{federation.GatewayLabel: t.GetName()})
			}
		}
		isGeneral := len(targets) == 0 && len(wanted[0]) == 0
		matches := slices.ContainsFunc(wanted, func(l map[string]string) bool { return federation.MatchesLabels(labels, []map[string]string{l}) })
		switch {
		case isGeneral && (general == nil || o.Older(general)):
			general = o
		case !isGeneral && matches && (selecting == nil || o.Older(selecting)):
			selecting = o
		}
	}
	return selecting, general
}

// TelemetryKeys are the Telemetry objects for the facet's proxies, from the root namespace to
// the workload.
func TelemetryKeys(f Facet) []federation.ObjectKey {
	var keys []federation.ObjectKey
	for text := range strings.SplitSeq(f.Extras().Telemetry, ",") {
		if namespace, name, ok := strings.Cut(text, "/"); ok {
			keys = append(keys, federation.TelemetryKind.Key(namespace, name))
		}
	}
	return keys
}

// serviceName is what the proxy's workload is called in traces, as with Istio.
func (n Node) serviceName() string {
	return CanonicalName(n.Labels, n.Workload().Name) + "." + n.Namespace
}

// CanonicalName is the service that a workload is part of by its labels, as with Istio; otherwise
// the workload is its own.
func CanonicalName(labels map[string]string, workload string) string {
	return cmp.Or(labels["service.istio.io/canonical-name"], labels["app.kubernetes.io/name"], labels["app"], workload)
}

// markTelemetry notes in facets of listeners what is logged and traced. Where something is, what
// all connections go through depends on what the proxy sees.
func markTelemetry(n Node, c effectiveConfig, facets []Facet) {
	if c.telemetry == "" {
		return
	}
	for i := range facets {
		if !facets[i].Has(logged) {
			continue
		}
		if facets[i].Has(entry) {
			facets[i].Namespace, facets[i].Egress = n.Namespace, c.egress
		}
		facets[i].edit(func(e *Extras) { e.Telemetry, e.Traced, e.Sampling = c.telemetry, c.traced, n.Settings.Sampling })
	}
}

// tracesByName reports whether a provider of MeshSettings must be told what the workload is called.
func tracesByName(mesh *federation.MeshSettings) bool {
	return mesh != nil && slices.ContainsFunc(mesh.ExtensionProviders,
		func(p federation.ExtensionProvider) bool { return p.Has("opentelemetry") })
}
