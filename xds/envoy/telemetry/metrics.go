package telemetry

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	istiostats "istio.io/api/envoy/extensions/stats"
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// PrometheusProvider is the provider of metrics that exists without a declaration: the proxies count, and are asked.
const PrometheusProvider = "prometheus"

// metricNames are those of Istio's metrics, without their prefix.
var metricNames = map[api.MetricSelector_IstioMetric]string{
	api.MetricSelector_REQUEST_COUNT:          "requests_total",
	api.MetricSelector_REQUEST_DURATION:       "request_duration_milliseconds",
	api.MetricSelector_REQUEST_SIZE:           "request_bytes",
	api.MetricSelector_RESPONSE_SIZE:          "response_bytes",
	api.MetricSelector_TCP_OPENED_CONNECTIONS: "tcp_connections_opened_total",
	api.MetricSelector_TCP_CLOSED_CONNECTIONS: "tcp_connections_closed_total",
	api.MetricSelector_TCP_SENT_BYTES:         "tcp_sent_bytes_total",
	api.MetricSelector_TCP_RECEIVED_BYTES:     "tcp_received_bytes_total",
	api.MetricSelector_GRPC_REQUEST_MESSAGES:  "request_messages_total",
	api.MetricSelector_GRPC_RESPONSE_MESSAGES: "response_messages_total",
}

// metrics are what objects say about the metrics of one direction.
type metrics struct {
	counted  bool // the provider is one of those that count
	off      bool // all metrics are disabled
	of       map[string]*istiostats.MetricConfig
	interval *durationpb.Duration
}

// counts is the configuration of the filter that counts; nil: nothing is counted. What is later in the order of
// objects and items counts.
func (s *settings) counts(withoutHost bool) *anypb.Any {
	m := metrics{counted: true, of: map[string]*istiostats.MetricConfig{}}
	named := []string{PrometheusProvider}
	for _, o := range s.objects {
		spec, _ := o.Spec.(*api.Telemetry)
		for _, item := range spec.GetMetrics() {
			if names := providerNames(item.GetProviders()); len(names) > 0 {
				named = names
				m.counted = slices.Contains(names, PrometheusProvider)
				s.reportProviders(names)
			}
			if slices.Contains(named, PrometheusProvider) {
				m.add(s, item)
			}
		}
	}
	if !m.counted || m.off {
		return nil
	}
	config := &istiostats.PluginConfig{DisableHostHeaderFallback: withoutHost, TcpReportingDuration: m.interval}
	for _, name := range slices.Sorted(maps.Keys(m.of)) {
		slices.Sort(m.of[name].TagsToRemove)
		config.Metrics = append(config.Metrics, m.of[name])
	}
	return resource.Any(config)
}

// add adds what one item says.
func (m *metrics) add(s *settings, item *api.Metrics) {
	if item.GetReportingInterval() != nil {
		m.interval = item.GetReportingInterval()
	}
	for _, o := range item.GetOverrides() {
		names, all := overridden(o.GetMatch())
		switch {
		case !s.matches(o.GetMatch().GetMode()):
		case all && o.GetDisabled().GetValue():
			m.off = true
		default:
			m.off = false
			for _, name := range names {
				m.override(name, o)
			}
		}
	}
}

func (m *metrics) override(name string, o *api.MetricsOverrides) {
	c := m.of[name]
	if c == nil {
		c = &istiostats.MetricConfig{Name: name, Dimensions: map[string]string{}}
		m.of[name] = c
	}
	if o.GetDisabled() != nil {
		c.Drop = o.GetDisabled().GetValue()
	}
	for tag, change := range o.GetTagOverrides() {
		delete(c.Dimensions, tag)
		c.TagsToRemove = slices.DeleteFunc(c.TagsToRemove, func(t string) bool { return t == tag })
		if CheckMetricTag(change) != nil {
			continue
		}
		if change.GetOperation() == api.MetricsOverrides_TagOverride_REMOVE {
			c.TagsToRemove = append(c.TagsToRemove, tag)
		} else {
			c.Dimensions[tag] = change.GetValue()
		}
	}
}

// overridden are the names of the metrics that a selector means, and whether it means all of them.
func overridden(match *api.MetricSelector) (names []string, all bool) {
	if custom := match.GetCustomMetric(); custom != "" {
		return []string{custom}, false
	}
	if name := metricNames[match.GetMetric()]; name != "" {
		return []string{name}, false
	}
	return slices.Sorted(maps.Values(metricNames)), true
}

// CheckMetricTag says why proxies would refuse the tag of a metric.
func CheckMetricTag(t *api.MetricsOverrides_TagOverride) error {
	if t.GetOperation() == api.MetricsOverrides_TagOverride_REMOVE {
		return nil
	}
	if t.GetValue() == "" {
		return fmt.Errorf("a tag needs a value")
	}
	return CheckExpression(t.GetValue())
}

// reportProviders says which providers of metrics do not exist.
func (s *settings) reportProviders(names []string) {
	for _, name := range names {
		if name != PrometheusProvider {
			s.report(name, fmt.Errorf("%q is not a provider of metrics; write %s", name, PrometheusProvider))
		}
	}
}

// reportUncounted says that proxies without Istio's filters do not count as objects say.
func (s *settings) reportUncounted() {
	for _, o := range s.objects {
		spec, _ := o.Spec.(*api.Telemetry)
		if len(spec.GetMetrics()) > 0 {
			s.view.LeaveOut(resource.Reason{
				Code: resource.ReasonRuleIgnored, Cause: o.Key,
				Message: o.Key.Title() +
					": metrics has no effect for proxies without Istio's filters: they count by Envoy's own statistics, whose tags are set where a proxy is started",
			})
		}
	}
}
