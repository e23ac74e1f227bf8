// Package telemetry has proxies log, count and trace what Telemetry objects say.
package telemetry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// settings are the effective ones of the view's proxies for one direction.
type settings struct {
	view    *facet.View
	objects []*federation.Object // from the root namespace to the workload
	mode    api.WorkloadMode
	broken  map[string]bool // providers that were reported
}

// Apply adds logs, traces and metrics to a listener. What has none stays as it is.
func Apply(v *facet.View, l *listenerv3.Listener) {
	if v.Facet.Extras().Telemetry != "" {
		applyLogs(v, l)
	}
	if v.Facet.Extras().Telemetry != "" || v.Facet.Stats {
		applyStats(v, l)
	}
}

func settingsOf(v *facet.View, l *listenerv3.Listener) *settings {
	s := &settings{view: v, mode: api.WorkloadMode_CLIENT, broken: map[string]bool{}}
	if l.GetTrafficDirection() == corev3.TrafficDirection_INBOUND {
		s.mode = api.WorkloadMode_SERVER
	}
	for _, key := range node.TelemetryKeys(v.Facet) {
		if o, ok := v.Reader.Object(key); ok {
			s.objects = append(s.objects, o)
		}
	}
	return s
}

func applyLogs(v *facet.View, l *listenerv3.Listener) {
	s := settingsOf(v, l)
	logs, traces := s.logs(), s.traces()
	if len(logs) == 0 && traces.how == nil {
		return
	}
	seen := map[*listenerv3.Filter]bool{}
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		if len(chain.GetFilters()) == 0 {
			continue
		}
		last := chain.GetFilters()[len(chain.GetFilters())-1]
		if !seen[last] {
			seen[last] = true
			add(last, logs, traces)
		}
		for _, o := range s.objects {
			v.CausedBy(o, chain.GetFilters()[0])
		}
	}
	if l.GetBindToPort() == nil && l.GetUdpListenerConfig() == nil {
		l.AccessLog = unmatched(logs)
	}
}

// add has the filter that ends a chain log and trace.
func add(f *listenerv3.Filter, logs []logger, traces tracing) {
	m, err := f.GetTypedConfig().UnmarshalNew()
	if err != nil {
		return
	}
	switch m := m.(type) {
	case *hcmv3.HttpConnectionManager:
		for _, log := range logs {
			if log.http != nil {
				m.AccessLog = append(m.AccessLog, log.http)
			}
		}
		m.Tracing = traces.how
		if traces.requestID != nil {
			m.RequestIdExtension = traces.requestID
		}
	case *tcpproxyv3.TcpProxy:
		for _, log := range logs {
			if log.tcp != nil {
				m.AccessLog = append(m.AccessLog, log.tcp)
			}
		}
	default:
		return
	}
	f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: resource.Any(m)}
}

func (s *settings) matches(mode api.WorkloadMode) bool {
	return mode == api.WorkloadMode_CLIENT_AND_SERVER || mode == s.mode
}

// report says once why a provider is not used.
func (s *settings) report(name string, err error) {
	if s.broken[name] {
		return
	}
	s.broken[name] = true
	cause := federation.MeshSettingsKey
	if len(s.objects) > 0 {
		cause = s.objects[len(s.objects)-1].Key
	}
	s.view.LeaveOut(resource.Reason{
		Code: resource.ReasonNoProvider, Cause: cause,
		Message: fmt.Sprintf("%s: %v; nothing is sent to it", cause.Title(), err),
	})
}

// logging is what objects say about one provider.
type logging struct {
	disabled bool
	filter   string
}

// logs are the loggers of the providers of the closest object that names some. What the closest
// object says about a provider counts.
func (s *settings) logs() []logger {
	names, said := s.view.Reader.Mesh().Logs(), map[string]logging{}
	for _, o := range s.objects {
		named := map[string]bool{}
		spec, _ := o.Spec.(*api.Telemetry)
		for _, item := range spec.GetAccessLogging() {
			if !s.matches(item.GetMatch().GetMode()) || CheckExpression(item.GetFilter().GetExpression()) != nil {
				continue
			}
			of := names
			if len(item.GetProviders()) > 0 {
				of = providerNames(item.GetProviders())
				for _, name := range of {
					named[name] = true
				}
			}
			for _, name := range of {
				said[name] = logging{item.GetDisabled().GetValue(), item.GetFilter().GetExpression()}
			}
		}
		if len(named) > 0 {
			names = slices.Sorted(maps.Keys(named))
		}
	}
	var all []logger
	for _, name := range names {
		if said[name].disabled {
			continue
		}
		log, err := loggerOf(s.view, name, said[name].filter)
		if err != nil {
			s.report(name, err)
			continue
		}
		all = append(all, log)
	}
	return all
}

func providerNames(refs []*api.ProviderRef) []string {
	var names []string
	for _, ref := range refs {
		if !slices.Contains(names, ref.GetName()) {
			names = append(names, ref.GetName())
		}
	}
	return names
}

// traces are how requests are traced: each field is that of the closest object that has it.
func (s *settings) traces() tracing {
	all := &api.Tracing{}
	name := ""
	if defaults := s.view.Reader.Mesh().Traces(); len(defaults) > 0 {
		name = defaults[0]
	}
	for _, o := range s.objects {
		spec, _ := o.Spec.(*api.Telemetry)
		for _, item := range spec.GetTracing() {
			if !s.matches(item.GetMatch().GetMode()) {
				continue
			}
			if names := providerNames(item.GetProviders()); len(names) > 0 {
				name = names[0]
			}
			all.RandomSamplingPercentage = cmp.Or(item.GetRandomSamplingPercentage(), all.GetRandomSamplingPercentage())
			all.DisableSpanReporting = cmp.Or(item.GetDisableSpanReporting(), all.GetDisableSpanReporting())
			all.DisableContextPropagation = cmp.Or(item.GetDisableContextPropagation(), all.GetDisableContextPropagation())
			all.UseRequestIdForTraceSampling = cmp.Or(item.GetUseRequestIdForTraceSampling(), all.GetUseRequestIdForTraceSampling())
			if len(item.GetCustomTags()) > 0 {
				all.CustomTags = item.GetCustomTags()
			}
		}
	}
	if name == "" || all.GetDisableSpanReporting().GetValue() {
		return tracing{}
	}
	t, err := tracingBy(s.view, name)
	if err != nil {
		s.report(name, err)
		return tracing{}
	}
	return tracing{complete(t, all, s.view.Facet.Extras().Sampling), requestID(all)}
}
