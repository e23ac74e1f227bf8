package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// kind is one of the API types that the registry follows.
type kind int

const (
	kindServices kind = iota
	kindSlices
	kindPods
	kindNodes
	kindNamespaces     // all, for what they say of their Services; the account need not see them
	kindNamespace      // kube-system
	kindIstioNamespace // istio-system, which the account need not see
	kinds              // how many there are
)

const (
	system = metav1.NamespaceSystem
	// istioSystem is where Istio's guides put the label of a cluster's network.
	istioSystem = "istio-system"
)

// resource is one kind as the mechanism of listwatch knows it.
type resource struct {
	listwatch.Resource[object]
	kind kind
}

// resources are all kinds, in the order of kind.
func resources(c clients.Interface, domain string) []resource {
	all := metav1.NamespaceAll
	core, discovery := c.CoreV1(), c.DiscoveryV1()
	return []resource{
		define(kindServices, "services", core.Services(all), func(in *corev1.Service) object { return parseService(in, domain) }),
		define(kindSlices, "endpointslices.discovery.k8s.io", discovery.EndpointSlices(all),
			func(in *discoveryv1.EndpointSlice) object { return parseSlice(in) }),
		define(kindPods, "pods", core.Pods(all), func(in *corev1.Pod) object { return parsePod(in) }).only(alive()),
		define(kindNodes, "nodes", core.Nodes(), func(in *corev1.Node) object { return parseNode(in) }),
		define(kindNamespaces, "namespaces", core.Namespaces(), func(in *corev1.Namespace) object { return parseDefaults(in) }).optional(),
		define(kindNamespace, "namespaces", core.Namespaces(),
			func(in *corev1.Namespace) object { return parseNamespace(in) }).only(listwatch.Named(system)),
		define(kindIstioNamespace, "namespaces", core.Namespaces(),
			func(in *corev1.Namespace) object { return parseNamespace(in) }).only(listwatch.Named(istioSystem)).optional(),
	}
}

// define is a resource whose objects, when reading one makes the hub panic, are set aside alone.
func define[L, T runtime.Object](k kind, name string, client interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}, read func(T) object,
) resource {
	r := resource{listwatch.Of(name, client, read, object.size), k}
	r.Fault = func(at key, cause any, stack []byte) object {
		return &faulty{record: record{k: at}, kind: k, cause: cause, stack: stack}
	}
	return r
}

func (r resource) only(fields string) resource {
	r.Fields = fields
	return r
}

// optional: a server that forbids it is read without.
func (r resource) optional() resource {
	r.Optional = true
	return r
}

func alive() string {
	return "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
}

// changes passes what the mechanism reads of one kind on to the applier.
type changes struct {
	kind kind
	say  func(context.Context, event) bool
}

// Listed is part of listwatch.Sink.
func (c changes) Listed(ctx context.Context, items []object, epoch uint64) bool {
	return c.say(ctx, listed{kind: c.kind, items: items, epoch: epoch})
}

// Set is part of listwatch.Sink.
func (c changes) Set(ctx context.Context, o object) bool {
	return c.say(ctx, changed{kind: c.kind, set: o})
}

// Deleted is part of listwatch.Sink.
func (c changes) Deleted(ctx context.Context, k key) bool {
	return c.say(ctx, changed{kind: c.kind, gone: k})
}

// Following is part of listwatch.Sink.
func (c changes) Following(ctx context.Context, err error) {
	c.say(ctx, followed{kind: c.kind, err: err})
}
