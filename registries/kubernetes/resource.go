package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientset "k8s.io/client-go/kubernetes"
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

// resource is how one kind is listed, watched and read.
type resource struct {
	kind kind
	name string // for messages
	// optional: a server that forbids it is read without.
	optional bool
	fields   string // field selector
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	read     func(runtime.Object) object // keeps only what is used; nil for another type
}

// resources are all kinds, in the order of kind.
func resources(c clientset.Interface, domain string) []resource {
	all := metav1.NamespaceAll
	core, discovery := c.CoreV1(), c.DiscoveryV1()
	return []resource{
		define(kindServices, "services", "", core.Services(all), func(in *corev1.Service) object { return parseService(in, domain) }),
		define(kindSlices, "endpointslices.discovery.k8s.io", "", discovery.EndpointSlices(all), func(in *discoveryv1.EndpointSlice) object { return parseSlice(in) }),
		define(kindPods, "pods", alive(), core.Pods(all), func(in *corev1.Pod) object { return parsePod(in) }),
		define(kindNodes, "nodes", "", core.Nodes(), func(in *corev1.Node) object { return parseNode(in) }),
		optional(define(kindNamespaces, "namespaces", "", core.Namespaces(), func(in *corev1.Namespace) object { return parseDefaults(in) })),
		define(kindNamespace, "namespaces", only(system), core.Namespaces(), func(in *corev1.Namespace) object { return parseNamespace(in) }),
		optional(define(kindIstioNamespace, "namespaces", only(istioSystem), core.Namespaces(), func(in *corev1.Namespace) object { return parseNamespace(in) })),
	}
}

func optional(r resource) resource {
	r.optional = true
	return r
}

func alive() string {
	return "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
}

func only(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

// typedClient is what every typed client of client-go can do.
type typedClient[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func define[L, T runtime.Object](k kind, name, selector string, client typedClient[L], read func(T) object) resource {
	return resource{
		kind: k, name: name, fields: selector,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		watch: client.Watch,
		read: func(in runtime.Object) object {
			if typed, ok := in.(T); ok {
				return read(typed)
			}
			return nil
		},
	}
}
