package ingress

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

const (
	apiVersion  = "v1"           // of the kinds that are made
	httpGateway = "ingress-http" // the Gateway of a cluster for plain text
)

// lookup finds the ports of a service of the mesh.
type lookup func(namespace, service string) (ports []federation.ServicePort, exists bool)

type object = map[string]any

// made is what was translated: an object, or nil, and what is wrong with Ingresses that
// take part in it.
type made struct {
	object   *config.Object
	problems []config.Problem
}

// plainText is the Gateway for plain text of all Ingresses of a cluster.
func plainText(s settings, of federation.ClusterID, oldest *entry) *config.Object {
	key := gatewayKey(of, s.namespace, httpGateway)
	return manifest(key, oldest.created, object{
		"selector": object{selectorLabel: s.selector},
		"servers":  []any{object{"hosts": []any{anyHost}, "port": object{"name": "http", "number": 80, "protocol": "HTTP"}}},
	})
}

// encrypted is the Gateway that ends TLS with one Secret of a namespace for the hosts. Its
// credential is the Secret of that namespace, for gateways of the settings' namespace.
func encrypted(s settings, of federation.ClusterID, at secretKey, hosts []string, oldest *entry) *config.Object {
	o := manifest(gatewayKey(of, at.namespace, at.gateway()), oldest.created, object{
		"selector": object{selectorLabel: s.selector},
		"servers": []any{object{
			"hosts": hosts, "port": object{"name": "https", "number": 443, "protocol": "HTTPS"},
			"tls": object{"mode": "SIMPLE", "credentialName": at.name},
		}},
	})
	o.Credentials = federation.CredentialGrant{From: at.namespace, To: s.namespace}
	return o
}

// secretKey names a Secret of the cluster.
type secretKey struct{ namespace, name string }

func (k secretKey) gateway() string {
	return "ingress-tls-" + text.Label(k.name, 63-len("ingress-tls-"))
}

func gatewayKey(of federation.ClusterID, namespace, name string) federation.ObjectKey {
	kind := federation.GatewayKind
	return federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: namespace, Name: name, Cluster: of}
}

// routesName is the name of the VirtualService of a host.
func routesName(host string) string {
	prefix, rest := "ingress-host.", host
	if host == anyHost {
		return "ingress-any"
	}
	if below, wild := strings.CutPrefix(host, "*."); wild {
		prefix, rest = "ingress-wildcard.", below
	}
	if len(prefix)+len(rest) > 253 {
		rest = text.Label(rest, 63)
	}
	return prefix + rest
}

// path is a path of a host, or its default.
type path struct {
	exact    bool
	elements bool   // a prefix of whole elements
	value    string // "" matches every path
	by       *entry
	field    string // of the backend
	backend  *networkingv1.IngressBackend
}

// routes is the VirtualService of one host. The Ingresses are those that have it, the
// oldest first; gateways are named as NAMESPACE/NAME.
func routes(of federation.ClusterID, host string, ingresses []*entry, gateways []string, services lookup) made {
	var m made
	var paths []path
	taken := map[path]*entry{}
	take := func(p path) {
		id := path{exact: p.exact, elements: p.elements, value: p.value}
		if by := taken[id]; by != nil {
			m.problems = append(m.problems, p.by.problem(codePath, strings.TrimSuffix(p.field, ".backend"),
				"the path of host %s has no effect: %s, which is older, has it", host, by.title()))
			return
		}
		taken[id] = p.by
		paths = append(paths, p)
	}
	for _, e := range ingresses {
		for _, p := range e.paths(host) {
			take(p)
		}
	}
	slices.SortStableFunc(paths, comparePaths)
	paths = append(paths, defaults(host, ingresses, taken, &m)...)
	if len(paths) == 0 {
		return m
	}
	var all []any
	for _, p := range paths {
		route, problem := p.route(services)
		if problem != nil {
			m.problems = append(m.problems, *problem)
		}
		all = append(all, route)
	}
	key := federation.ObjectKey{
		Group: federation.VirtualServiceKind.Group, Kind: federation.VirtualServiceKind.Name, Namespace: ingresses[0].namespace,
		Name: routesName(host), Cluster: of,
	}
	m.object = manifest(key, ingresses[0].created, object{
		"hosts": []any{host}, "gateways": gateways, "http": all,
		"exportTo": []any{"*"}, // whatever the mesh's default is: the gateway is in another namespace
	})
	return m
}

// defaults is where requests for the host go that no path matches: where the oldest default
// backend says.
func defaults(host string, ingresses []*entry, taken map[path]*entry, m *made) (found []path) {
	every := taken[path{}]
	for _, e := range ingresses {
		if e.spec.DefaultBackend == nil {
			continue
		}
		if every == nil {
			every = e
			found = []path{{by: e, field: "spec.defaultBackend", backend: e.spec.DefaultBackend}}
			continue
		}
		if every != e {
			m.problems = append(m.problems, e.problem(codePath, "spec.defaultBackend",
				"for host %s the default backend has no effect: %s comes first", host, every.title()))
		}
	}
	return found
}

// paths are those that the Ingress has for the host.
func (e *entry) paths(host string) (all []path) {
	for i, rule := range e.spec.Rules {
		if rule.HTTP == nil || strings.ToLower(cmp.Or(rule.Host, anyHost)) != host {
			continue
		}
		for j := range rule.HTTP.Paths {
			from := &rule.HTTP.Paths[j]
			p := pathOf(from)
			p.by, p.field, p.backend = e, fmt.Sprintf("spec.rules[%d].http.paths[%d].backend", i, j), &from.Backend
			all = append(all, p)
		}
	}
	return all
}

// pathOf reads the type and value of a path. A path whose type is left to the
// implementation is exact, unless it ends in /* or .*, as in Istio.
func pathOf(from *networkingv1.HTTPIngressPath) path {
	kind := networkingv1.PathTypeImplementationSpecific
	if from.PathType != nil {
		kind = *from.PathType
	}
	switch value := from.Path; kind {
	case networkingv1.PathTypeExact:
		return path{exact: true, value: cmp.Or(value, "/")}
	case networkingv1.PathTypePrefix:
		value = strings.TrimRight(value, "/")
		return path{elements: value != "", value: value}
	default:
		if value == anyHost {
			return path{}
		}
		for _, suffix := range []string{".*", "/*"} {
			if prefix, is := strings.CutSuffix(value, suffix); is && prefix != "/" {
				return path{value: prefix}
			} else if is {
				return path{}
			}
		}
		return path{exact: value != "", value: value}
	}
}

// comparePaths orders exact paths first, then longer ones.
func comparePaths(a, b path) int {
	rank := func(p path) int {
		switch {
		case p.exact:
			return 0
		case p.value != "":
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(b.value), len(a.value)))
}

func (p path) matches() []any {
	uri := func(how, value string) any { return object{"uri": object{how: value}} }
	switch {
	case p.exact:
		return []any{uri("exact", p.value)}
	case p.elements:
		return []any{uri("exact", p.value), uri("prefix", p.value+"/")}
	}
	return []any{uri("prefix", cmp.Or(p.value, "/"))}
}

// route sends the requests of the path to its backend. Requests for a backend that cannot be
// named get 503: they must not reach the backend of a shorter path.
func (p path) route(services lookup) (route object, problem *config.Problem) {
	route = object{"match": p.matches()}
	refuse := func(code, field, format string, args ...any) (object, *config.Problem) {
		wrong := p.by.problem(code, p.field+field, format, args...)
		route["directResponse"] = object{"status": http.StatusServiceUnavailable, "body": object{"string": wrong.Code}}
		return route, &wrong
	}
	to := p.backend.Service
	if to == nil {
		return refuse(codeBackend, "", "only services are supported as backends; requests get 503")
	}
	ports, exists := services(p.by.namespace, to.Name)
	if !exists {
		wrong := p.by.problem(codeService, p.field+".service.name", "there is no service %s in namespace %s; requests get 503",
			to.Name, p.by.namespace)
		problem = &wrong
	}
	number := to.Port.Number
	at := slices.IndexFunc(ports, func(port federation.ServicePort) bool {
		return to.Port.Name != "" && port.Name == to.Port.Name || to.Port.Name == "" && int32(port.Number) == number
	})
	switch {
	case at >= 0:
		number = int32(ports[at].Number)
	case to.Port.Name != "" && !exists:
		return refuse(codeService, ".service.name", "there is no service %s in namespace %s; requests get 503", to.Name, p.by.namespace)
	case to.Port.Name != "":
		return refuse(codePort, ".service.port.name", "service %s/%s has no port %s; requests get 503", p.by.namespace,
			to.Name, federation.Quote(to.Port.Name))
	case exists:
		wrong := p.by.problem(codePort, p.field+".service.port.number", "service %s/%s has no port %d; requests get 503",
			p.by.namespace, to.Name, number)
		problem = &wrong
	}
	route["route"] = []any{object{"destination": object{
		"host": string(federation.ResolveHost(to.Name, p.by.namespace)), "port": object{"number": number},
	}}}
	return route, problem
}

// manifest is the object of the key with the spec.
func manifest(key federation.ObjectKey, created time.Time, spec object) *config.Object {
	metadata := object{"name": key.Name, "namespace": key.Namespace}
	if !created.IsZero() {
		metadata["creationTimestamp"] = created.Format(time.RFC3339)
	}
	written, _ := json.Marshal(object{
		"apiVersion": key.Group + "/" + apiVersion, "kind": key.Kind, "metadata": metadata,
		"spec": spec,
	}) //nolint:errchkjson // texts and numbers
	return &config.Object{Key: key, APIVersion: key.Group + "/" + apiVersion, Manifest: written}
}
