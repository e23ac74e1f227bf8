package writeback

import (
	"encoding/json"
	"maps"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/ingress"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// readClass reads an IngressClass; the caller holds mu.
func (w *Writer) readClass(o *crd.Original) {
	var class networkingv1.IngressClass
	if json.Unmarshal(o.Manifest, &class) != nil {
		return
	}
	if w.classes[o.Cluster][o.Key.Name] != class.Spec.Controller {
		w.changeClasses(o.Cluster, func(of map[string]string) { of[o.Key.Name] = class.Spec.Controller })
	}
}

// changeClasses replaces the classes, which a round may be reading; the caller holds mu.
func (w *Writer) changeClasses(cluster federation.ClusterID, change func(map[string]string)) {
	of := map[string]string{}
	maps.Copy(of, w.classes[cluster])
	change(of)
	w.classes = maps.Clone(w.classes)
	w.classes[cluster] = of
	w.touchAll(cluster)
}

// ofIngress is the status of an Ingress; nil: the hub does not serve it.
func (l round) ofIngress(o *crd.Original) *wanted.Status {
	namespace, name := ingress.GatewayService(l.settings)
	if !ingress.Serves(l.settings, o.Manifest, l.classes[o.Cluster]) {
		return nil
	}
	return wanted.ForIngress(l.mesh.Read, o.Cluster, wanted.Service{Namespace: namespace, Name: name})
}
