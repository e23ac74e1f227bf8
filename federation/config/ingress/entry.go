package ingress

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// The codes of problems with Ingresses.
const (
	codeClass       = "INGRESS_CLASS_UNKNOWN" // the Ingress names a class that does not exist
	codeEmpty       = "INGRESS_EMPTY"         // nothing of the Ingress routes a request
	codeHost        = "HOST_INVALID"
	codePath        = "PATH_TAKEN"            // an older Ingress has the path of the host
	codeBackend     = "BACKEND_NOT_SUPPORTED" // a backend that is not a service
	codeService     = "SERVICE_UNKNOWN"
	codePort        = "BACKEND_PORT_UNKNOWN"
	codeTLSHost     = "TLS_HOST_TAKEN"      // an older Ingress has another certificate for the host
	codeNoSecret    = "TLS_SECRET_REQUIRED" // tls names no Secret
	codeUndecodable = "UNDECODABLE"
)

// anyHost is the host of rules that name none.
const anyHost = "*"

// entry is an Ingress as it was read. It is never changed.
type entry struct {
	namespace, name string
	cluster         federation.ClusterID
	created         time.Time
	class           *networkingv1.Ingress // its class, and nothing else
	spec            networkingv1.IngressSpec
	hosts           []string // of its rules, and anyHost for a default backend; each once
	certificates    []certificate
	problems        []config.Problem // of the Ingress itself
}

// certificate is an item of tls that can be used.
type certificate struct {
	field  string
	secret string
	hosts  []string
}

// read decodes an Ingress.
func read(o *config.Object) *entry {
	var in networkingv1.Ingress
	e := &entry{namespace: o.Key.Namespace, name: o.Key.Name, cluster: o.Key.Cluster, class: &networkingv1.Ingress{}}
	if err := json.Unmarshal(o.Manifest, &in); err != nil {
		e.complain(codeUndecodable, "", "the Ingress cannot be read and has no effect: %v", err)
		return e
	}
	e.created, e.spec = in.CreationTimestamp.UTC(), in.Spec
	e.class.Annotations, e.class.Spec.IngressClassName = in.Annotations, in.Spec.IngressClassName
	for i, rule := range e.spec.Rules {
		host := strings.ToLower(cmp.Or(rule.Host, anyHost))
		if !isHost(host) {
			e.complain(codeHost, fmt.Sprintf("spec.rules[%d].host", i), "%s is not a DNS name; the rule has no effect", federation.Quote(rule.Host))
			continue
		}
		e.hosts = append(e.hosts, host)
	}
	if e.spec.DefaultBackend != nil {
		e.hosts = append(e.hosts, anyHost)
	}
	slices.Sort(e.hosts)
	e.hosts = slices.Compact(e.hosts)
	for i, tls := range e.spec.TLS {
		e.readTLS(fmt.Sprintf("spec.tls[%d]", i), tls)
	}
	if !e.routes() {
		e.complain(codeEmpty, "spec.rules", "the Ingress has neither a path nor a default backend, and no effect")
	}
	return e
}

func (e *entry) readTLS(field string, tls networkingv1.IngressTLS) {
	if tls.SecretName == "" {
		e.complain(codeNoSecret, field+".secretName",
			"without a Secret there is no TLS for these hosts; name a Secret of type kubernetes.io/tls in namespace %s", e.namespace)
		return
	}
	c := certificate{field: field, secret: tls.SecretName}
	for i, host := range tls.Hosts {
		host = strings.ToLower(host)
		if !isHost(host) {
			e.complain(codeHost, fmt.Sprintf("%s.hosts[%d]", field, i), "%s is not a DNS name; there is no TLS for it",
				federation.Quote(tls.Hosts[i]))
			continue
		}
		c.hosts = append(c.hosts, host)
	}
	if len(tls.Hosts) == 0 {
		c.hosts = []string{anyHost}
	}
	if len(c.hosts) > 0 {
		e.certificates = append(e.certificates, c)
	}
}

// routes reports whether any request is routed by the Ingress.
func (e *entry) routes() bool {
	if e.spec.DefaultBackend != nil {
		return true
	}
	return slices.ContainsFunc(e.spec.Rules, func(r networkingv1.IngressRule) bool { return r.HTTP != nil && len(r.HTTP.Paths) > 0 })
}

func isHost(host string) bool {
	if host == anyHost {
		return true
	}
	if strings.HasPrefix(host, "*.") {
		return len(validation.IsWildcardDNS1123Subdomain(host)) == 0
	}
	return len(validation.IsDNS1123Subdomain(host)) == 0 && len(validation.IsValidIP(nil, host)) > 0
}

// title is how problems name the Ingress.
func (e *entry) title() string {
	return federation.ObjectKey{Kind: federation.IngressKind.Name, Namespace: e.namespace, Name: e.name, Cluster: e.cluster}.Title()
}

func (e *entry) problem(code, field, format string, args ...any) config.Problem {
	return config.Problem{Code: code, Object: e.title(), Field: field, Message: fmt.Sprintf(format, args...)}
}

func (e *entry) complain(code, field, format string, args ...any) {
	e.problems = append(e.problems, e.problem(code, field, format, args...))
}

// compareAge orders the older Ingress first, and those of equal age by name, then by
// namespace, as Istio does.
func (e *entry) compareAge(o *entry) int {
	return cmp.Or(e.created.Compare(o.created), cmp.Compare(e.name, o.name), cmp.Compare(e.namespace, o.namespace))
}
