package endpoint

import (
	"cmp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// workloadOf is what Istio's filters read about the workload of an endpoint before it answers, or if it has no
// proxy: NAME;NAMESPACE;SERVICE;REVISION;CLUSTER.
func workloadOf(e *federation.Endpoint, of *federation.Service, cluster federation.ClusterID) string {
	namespace, pod, known := strings.Cut(e.Workload, "/")
	if !known {
		namespace, pod = of.Key.Namespace, ""
	}
	name := controllerOf(pod, e.Labels)
	service := node.CanonicalName(e.Labels, name)
	revision := cmp.Or(e.Labels["service.istio.io/canonical-revision"], e.Labels["app.kubernetes.io/version"], e.Labels["version"])
	if revision == "latest" {
		revision = "" // the default
	}
	return strings.Join([]string{name, namespace, service, revision, string(cluster)}, ";")
}

// controllerOf is the name of the Deployment, StatefulSet or DaemonSet of a pod, whose name it made of its own;
// a pod of none is its own workload.
func controllerOf(pod string, labels map[string]string) string {
	if hash := labels["pod-template-hash"]; hash != "" {
		if name, _, found := strings.Cut(pod, "-"+hash+"-"); found {
			return name
		}
	}
	controlled := labels["statefulset.kubernetes.io/pod-name"] != "" || labels["controller-revision-hash"] != ""
	if at := strings.LastIndexByte(pod, '-'); controlled && at > 0 {
		return pod[:at]
	}
	return pod
}

// metadata is what proxies get of the endpoint beside its address.
func (o Offer) metadata() *corev3.Metadata {
	if o.workload == "" {
		return o.peer
	}
	own := map[string]*structpb.Value{"workload": structpb.NewStringValue(o.workload)}
	all := map[string]*structpb.Struct{resource.IstioMetadataKey: {Fields: own}}
	for key, value := range o.peer.GetFilterMetadata() {
		all[key] = value
	}
	return &corev3.Metadata{FilterMetadata: all}
}
