// Package envoyfilter applies EnvoyFilters: the last stage of a resource that is built. Only a
// patch that does not fit is skipped, and the reason says why.
package envoyfilter

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
)

type (
	configPatch = api.EnvoyFilter_EnvoyConfigObjectPatch
	operation   = api.EnvoyFilter_Patch_Operation
)

// Patch is one patch of an EnvoyFilter.
type Patch struct {
	Object federation.ObjectKey
	Index  int
	Spec   *configPatch
}

// Field is where the patch is in the object.
func (p Patch) Field() string { return fmt.Sprintf("configPatches[%d]", p.Index) }

// subject is what patches of one applyTo change.
type subject struct {
	value      proto.Message // a message of the type of the value
	operations []operation
	// patch changes the resource, which is its own to change, and reports whether anything
	// matched. A nil message means that the resource is removed.
	patch func(*job, proto.Message) (m proto.Message, matched bool, err error)
}

const (
	merge        = api.EnvoyFilter_Patch_MERGE
	mergeReplace = api.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST
	add          = api.EnvoyFilter_Patch_ADD
	remove       = api.EnvoyFilter_Patch_REMOVE
	insertBefore = api.EnvoyFilter_Patch_INSERT_BEFORE
	insertAfter  = api.EnvoyFilter_Patch_INSERT_AFTER
	insertFirst  = api.EnvoyFilter_Patch_INSERT_FIRST
	replace      = api.EnvoyFilter_Patch_REPLACE
)

var (
	ofWhole = []operation{merge, mergeReplace, add, remove}
	ofSets  = []operation{merge, mergeReplace, add, remove}
	ofLists = []operation{merge, mergeReplace, add, remove, insertBefore, insertAfter, insertFirst, replace}
)

// subjects are what can be patched.
var subjects = map[api.EnvoyFilter_ApplyTo]subject{
	api.EnvoyFilter_CLUSTER:             {&clusterv3.Cluster{}, ofWhole, patchCluster},
	api.EnvoyFilter_LISTENER:            {&listenerv3.Listener{}, ofWhole, patchListener},
	api.EnvoyFilter_FILTER_CHAIN:        {&listenerv3.FilterChain{}, ofSets, patchChains},
	api.EnvoyFilter_LISTENER_FILTER:     {&listenerv3.ListenerFilter{}, ofLists, patchListenerFilters},
	api.EnvoyFilter_NETWORK_FILTER:      {&listenerv3.Filter{}, ofLists, patchNetworkFilters},
	api.EnvoyFilter_HTTP_FILTER:         {&hcmv3.HttpFilter{}, ofLists, patchHTTPFilters},
	api.EnvoyFilter_ROUTE_CONFIGURATION: {&routev3.RouteConfiguration{}, []operation{merge, mergeReplace}, patchRouteConfiguration},
	api.EnvoyFilter_VIRTUAL_HOST:        {&routev3.VirtualHost{}, ofSets, patchHosts},
	api.EnvoyFilter_HTTP_ROUTE: {&routev3.Route{}, []operation{
		merge, mergeReplace, add, remove, insertBefore, insertAfter,
		insertFirst,
	}, patchHTTPRoutes},
}

// job is a patch that was read.
type job struct {
	Patch
	subject subject
	op      operation
	value   proto.Message // nil for REMOVE; not to be changed
	earlier []*job        // those that are applied before it
}

// read reads a patch. An error means that it never has an effect.
func read(p Patch) (*job, error) {
	s, known := subjects[p.Spec.GetApplyTo()]
	if !known {
		return nil, unsupported(p.Spec.GetApplyTo())
	}
	value, err := valueOf(p.Spec)
	if err != nil {
		return nil, err
	}
	return &job{Patch: p, subject: s, op: p.Spec.GetPatch().GetOperation(), value: value}, nil
}

func unsupported(to api.EnvoyFilter_ApplyTo) error {
	switch to {
	case api.EnvoyFilter_BOOTSTRAP:
		return fmt.Errorf("applyTo: BOOTSTRAP is not supported: proxies have their bootstrap before they connect; change it where they are started")
	case api.EnvoyFilter_EXTENSION_CONFIG:
		return fmt.Errorf("applyTo: EXTENSION_CONFIG is not supported: write the typed_config into the filter instead of config_discovery")
	}
	return fmt.Errorf("applyTo: %s is not supported", to)
}

// merge puts the value into the message.
func (j *job) merge(into proto.Message) error {
	return merger{replaceLists: j.op == mergeReplace}.merge(into, proto.Clone(j.value))
}
