package ingress

import (
	"encoding/json"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// clusterIngresses has the Ingresses of one cluster.
type clusterIngresses struct {
	id          federation.ClusterID
	ingresses   map[at]*kept
	controllers map[string]string // by IngressClass
	oldest      *entry            // of those that are served; it dates the Gateway for plain text
	hosts       index[string]
	tls         index[string] // by host
	secrets     index[secretKey]
	services    index[at]
}

type at struct{ namespace, name string }

// kept is an Ingress, and whether it is served.
type kept struct {
	*entry
	class  *networkingv1.Ingress // of which the class is read again when classes or settings change
	served bool
}

// index finds Ingresses that are served.
type index[K comparable] map[K]map[*entry]struct{}

func (x index[K]) set(key K, e *entry, is bool) {
	if !is {
		delete(x[key], e)
		if len(x[key]) == 0 {
			delete(x, key)
		}
		return
	}
	if x[key] == nil {
		x[key] = map[*entry]struct{}{}
	}
	x[key][e] = struct{}{}
}

// byAge are those of a key, the oldest first.
func (x index[K]) byAge(key K) []*entry {
	return slices.SortedFunc(maps.Keys(x[key]), (*entry).compareAge)
}

func (x index[K]) oldest(key K) *entry {
	var oldest *entry
	for e := range x[key] {
		if oldest == nil || e.compareAge(oldest) < 0 {
			oldest = e
		}
	}
	return oldest
}

func (s *clusterIngresses) takeClass(name string, o *config.Object) {
	if o == nil {
		delete(s.controllers, name)
		return
	}
	var class networkingv1.IngressClass
	if json.Unmarshal(o.Manifest, &class) == nil {
		s.controllers[name] = class.Spec.Controller
	}
}

// owner is who has the certificate for a host.
type owner struct {
	by  *entry
	key secretKey
}

// owner is the oldest Ingress with a certificate for the host, and its Secret.
func (s *clusterIngresses) owner(host string) (o owner) {
	if o.by = s.tls.oldest(host); o.by == nil {
		return o
	}
	i := slices.IndexFunc(o.by.certificates, func(c certificate) bool { return slices.Contains(c.hosts, host) })
	o.key = secretKey{o.by.namespace, o.by.certificates[i].secret}
	return o
}
