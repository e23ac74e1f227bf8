package supported

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/telemetry"
)

var _ = add(row{kind: federation.TelemetryKind, concerns: func(o *federation.Object, f node.Facet, _ *federation.Reader) bool {
	own := o.Key
	own.Cluster = ""
	return slices.Contains(node.TelemetryKeys(f), own)
}, table: withTargets(&table{
	fields: []string{
		"selector.matchLabels", "accessLogging.match.mode", "accessLogging.providers.name", "accessLogging.disabled",
		"accessLogging.filter.expression",
		"tracing.match.mode", "tracing.providers.name", "tracing.randomSamplingPercentage", "tracing.disableSpanReporting", "tracing.customTags",
		"tracing.disableContextPropagation", "tracing.useRequestIdForTraceSampling",
		"metrics.providers.name", "metrics.overrides", "metrics.reportingInterval",
	},
	refused: map[string]string{
		"tracing.enableIstioTags": "their values differ by workload, and workloads share listeners; use customTags with environment, which each proxy reads for itself",
	},
	values: telemetryValues,
})})

// telemetryValues finds what proxies would refuse.
func telemetryValues(m proto.Message) []Field {
	n := &valueNotes{}
	spec, _ := m.(*api.Telemetry)
	n.targets(spec)
	for i, item := range spec.GetAccessLogging() {
		if err := telemetry.CheckExpression(item.GetFilter().GetExpression()); err != nil {
			n.add(fmt.Sprintf("accessLogging[%d].filter.expression", i), err.Error()+"; this item has no effect")
		}
	}
	for i, item := range spec.GetMetrics() {
		for j, o := range item.GetOverrides() {
			for _, name := range slices.Sorted(maps.Keys(o.GetTagOverrides())) {
				if err := telemetry.CheckMetricTag(o.GetTagOverrides()[name]); err != nil {
					n.add(fmt.Sprintf("metrics[%d].overrides[%d].tagOverrides[%s]", i, j, name), err.Error()+"; the tag is excluded")
				}
			}
		}
	}
	for i, item := range spec.GetTracing() {
		for _, name := range slices.Sorted(maps.Keys(item.GetCustomTags())) {
			if err := telemetry.CheckTag(item.GetCustomTags()[name]); err != nil {
				n.add(fmt.Sprintf("tracing[%d].customTags[%s]", i, name), err.Error()+"; the tag is excluded")
			}
		}
	}
	return n.found
}
