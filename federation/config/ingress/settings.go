package ingress

import (
	"cmp"
	"encoding/json"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// What Istio's users have where they say nothing else.
const (
	defaultClass    = "istio"
	defaultSelector = "ingressgateway"
	defaultService  = "istio-ingressgateway"

	classAnnotation = "kubernetes.io/ingress.class"
	controller      = "istio.io/ingress-controller" // of the hub's IngressClasses
	selectorLabel   = "istio"
)

// settings are those of the mesh that decide about Ingresses. They are comparable.
type settings struct {
	mode      federation.IngressMode
	class     string
	selector  string // value of the label istio of ingress gateways
	namespace string // of ingress gateways
}

// settingsOf reads the settings of the mesh; nil is without any.
func settingsOf(m *federation.MeshSettings) settings {
	s := settings{mode: federation.IngressOff, class: defaultClass, selector: defaultSelector, namespace: m.Root()}
	if m == nil {
		return s
	}
	s.mode = cmp.Or(m.IngressControllerMode, s.mode)
	s.class = cmp.Or(m.IngressClass, s.class)
	service := m.IngressService
	if namespace, name, has := strings.Cut(service, "/"); has {
		s.namespace, service = namespace, name
	}
	if service != "" && service != defaultService {
		s.selector = service
	}
	s.selector = cmp.Or(m.IngressSelector, s.selector)
	return s
}

// serves reports whether the hub serves the Ingress. unknown is the class that it names
// and that does not exist. controllerOf finds that of an IngressClass of the cluster.
func (s settings) serves(in *networkingv1.Ingress, controllerOf func(class string) (string, bool)) (served bool, unknown string) {
	if s.mode == federation.IngressOff {
		return false, ""
	}
	if class, has := in.Annotations[classAnnotation]; has {
		return class == s.class, ""
	}
	if in.Spec.IngressClassName == nil {
		return s.mode == federation.IngressDefault, ""
	}
	of, exists := controllerOf(*in.Spec.IngressClassName)
	if !exists {
		return false, *in.Spec.IngressClassName
	}
	return of == controller, ""
}

// GatewayService is the Service of the gateways that serve Ingresses; the settings may be nil.
func GatewayService(m *federation.MeshSettings) (namespace, name string) {
	service := defaultService
	if m != nil {
		service = cmp.Or(m.IngressService, service)
	}
	if namespace, name, has := strings.Cut(service, "/"); has {
		return namespace, name
	}
	return m.Root(), service
}

// Serves reports whether the hub serves the Ingress of the manifest. controllers are those of
// the cluster's IngressClasses, by name.
func Serves(m *federation.MeshSettings, manifest []byte, controllers map[string]string) bool {
	var in networkingv1.Ingress
	if json.Unmarshal(manifest, &in) != nil {
		return false
	}
	served, _ := settingsOf(m).serves(&in, func(class string) (string, bool) {
		of, exists := controllers[class]
		return of, exists
	})
	return served
}
