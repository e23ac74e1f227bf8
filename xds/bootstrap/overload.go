package bootstrap

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

const (
	heapMonitor        = "envoy.resource_monitors.fixed_heap"
	connectionsMonitor = "envoy.resource_monitors.global_downstream_max_connections"
)

// overloadManager sheds load before the process runs out of memory (S55).
func (o *Options) overloadManager() *overloadv3.OverloadManager {
	return &overloadv3.OverloadManager{
		RefreshInterval: durationpb.New(250 * time.Millisecond),
		ResourceMonitors: []*overloadv3.ResourceMonitor{
			{
				Name:       heapMonitor,
				ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: resource.Any(&heapv3.FixedHeapConfig{MaxHeapSizeBytes: o.MaxHeap})},
			},
			{
				Name: connectionsMonitor,
				ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: resource.Any(&connectionsv3.DownstreamConnectionsConfig{
					MaxActiveDownstreamConnections: int64(min(o.MaxConnections, 1<<62)),
				})},
			},
		},
		Actions: []*overloadv3.OverloadAction{
			heapAction("envoy.overload_actions.shrink_heap", 0.90),
			heapAction("envoy.overload_actions.disable_http_keepalive", 0.92),
			heapAction("envoy.overload_actions.stop_accepting_requests", 0.95),
			heapAction("envoy.overload_actions.stop_accepting_connections", 0.98),
		},
	}
}

func heapAction(name string, from float64) *overloadv3.OverloadAction {
	return &overloadv3.OverloadAction{Name: name, Triggers: []*overloadv3.Trigger{{
		Name: heapMonitor, TriggerOneof: &overloadv3.Trigger_Threshold{Threshold: &overloadv3.ThresholdTrigger{Value: from}},
	}}}
}

// runtime has values that do not change while Envoy runs.
func runtime() *bootstrapv3.LayeredRuntime {
	return &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name: "isthmus",
		LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: &structpb.Struct{Fields: map[string]*structpb.Value{
			"re2.max_program_size.error_level": structpb.NewNumberValue(32768),
		}}},
	}}}
}
