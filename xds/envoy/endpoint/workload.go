package endpoint

import (
	"cmp"
	"regexp"
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

// cronJob matches the name of a Job that a CronJob made.
var cronJob = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// controllerOf is the name of the workload that a pod or a WorkloadEntry is of: what its label says, or else the name of the
// Deployment, StatefulSet, DaemonSet, CronJob or Job that made a pod, whose name it made of its own. A pod of none is its own workload.
func controllerOf(pod string, labels map[string]string) string {
	if name := labels[federation.WorkloadNameLabel]; name != "" {
		return name
	}
	for _, label := range []string{"pod-template-hash", "rollouts-pod-template-hash"} {
		if hash := labels[label]; hash != "" {
			if name, _, found := strings.Cut(pod, "-"+hash+"-"); found {
				return name
			}
		}
	}
	if job := cmp.Or(labels["batch.kubernetes.io/job-name"], labels["job-name"]); job != "" && strings.HasPrefix(pod, job+"-") {
		return cronJob.ReplaceAllString(job, "$1")
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
