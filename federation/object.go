package federation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind names a kind of configuration objects; versions are the store's
// business.
type Kind struct{ Group, Name string }

func (k Kind) String() string { return strings.TrimSuffix(k.Name+"."+k.Group, ".") }

// ObjectKey is the identity of a configuration object (seeds 1.11).
type ObjectKey struct {
	Group, Kind, Namespace, Name string
	// Cluster is the one whose proxies alone the object concerns; empty: all proxies. One
	// of all proxies comes before one of a cluster of the same name.
	Cluster ClusterID
}

// Of returns the object's kind.
func (k ObjectKey) Of() Kind { return Kind{k.Group, k.Kind} }

// Everywhere is the key of the object for all proxies.
func (k ObjectKey) Everywhere() ObjectKey {
	k.Cluster = ""
	return k
}

// Compare orders by group, kind, namespace, name and cluster.
func (k ObjectKey) Compare(o ObjectKey) int {
	return cmp.Or(cmp.Compare(k.Group, o.Group), cmp.Compare(k.Kind, o.Kind),
		cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name), cmp.Compare(k.Cluster, o.Cluster))
}

// SortKey is the key as one text, in the order of Compare. NUL, which is part of no name, is
// between its parts.
func (k ObjectKey) SortKey() string {
	if k.Cluster == "" {
		return k.Group + nul + k.Kind + nul + k.Namespace + nul + k.Name
	}
	return k.Group + nul + k.Kind + nul + k.Namespace + nul + k.Name + nul + string(k.Cluster)
}

// ParseObjectKey is the reverse of SortKey.
func ParseObjectKey(sortKey string) (k ObjectKey, err error) {
	var rest, cluster string
	k.Group, rest, _ = strings.Cut(sortKey, nul)
	k.Kind, rest, _ = strings.Cut(rest, nul)
	namespace, rest, whole := strings.Cut(rest, nul)
	k.Namespace = namespace
	k.Name, cluster, _ = strings.Cut(rest, nul)
	k.Cluster = ClusterID(cluster)
	if !whole || strings.Contains(cluster, nul) {
		return ObjectKey{}, fmt.Errorf("%q is not the key of an object", sortKey)
	}
	return k, nil
}

func (k ObjectKey) String() string {
	return k.Kind + "." + k.Group + " " + k.Namespace + "/" + k.Name + k.ofCluster()
}

func (k ObjectKey) ofCluster() string {
	if k.Cluster == "" {
		return ""
	}
	return " of cluster " + string(k.Cluster)
}

// Title is how problems name the object, like "ServiceEntry shop/api".
func (k ObjectKey) Title() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name + k.ofCluster()
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name + k.ofCluster()
}

// Object is a configuration object as readers see it. It is never changed after
// it was handed over with an Edit.
type Object struct {
	Key      ObjectKey
	Revision int64  // of the store, when the object last changed
	Digest   string // of Spec: equal digests mean equal specs
	Labels   map[string]string
	Created  time.Time
	// Names are what readers look the object up by: the hostnames it names,
	// wildcards included ("*.example.com"), and NAMESPACE/NAME of objects that it
	// refers to. An object without names is found by kind and namespace only.
	Names []string
	// ProxyLabels are the keys of a proxy's labels that decide whether and how
	// the object concerns the proxy.
	ProxyLabels []string
	// DryRun marks a policy that is tried out: proxies tell what it would refuse, and refuse
	// nothing.
	DryRun bool
	// Credentials says whose Secrets the credentials are that the object names.
	Credentials CredentialGrant
	// Origin is what a source of the hub derived the object from; zero: people wrote it.
	Origin Origin
	// Spec is of the kind's own Go type, and opaque here. Where Decode is set it is
	// not kept: the services and workloads of the snapshot say what the object means.
	Spec   any
	Decode func() any
}

// Origin is an object of which another one is derived, and the field of it: spec.listeners[1] for a
// listener of the Gateway API, none for all of the object. No manifest can set it.
type Origin struct {
	Key   ObjectKey
	Field string
	// Parts are the objects that say a part of it each, sorted, such as the routes that share a
	// listener's host; none: Key says all of it.
	Parts []ObjectKey
}

// Has reports whether the object is derived from the one of that key.
func (o Origin) Has(key ObjectKey) bool { return o.Key == key || slices.Contains(o.Parts, key) }

// Equal compares all fields.
func (o Origin) Equal(p Origin) bool {
	return o.Key == p.Key && o.Field == p.Field && slices.Equal(o.Parts, p.Parts)
}

// Subject is the object that people wrote, which reasons are about.
func (o *Object) Subject() ObjectKey {
	if o.Origin.Key != (ObjectKey{}) {
		return o.Origin.Key
	}
	return o.Key
}

// SubjectTitle is how reasons name the part of the subject that the object says.
func (o *Object) SubjectTitle() string {
	if o.Origin.Field != "" {
		return o.Origin.Key.String() + " " + o.Origin.Field
	}
	return o.Subject().String()
}

// RefusedHost is not a service: sources of the hub write it into what they derive where they refuse a
// destination, and report why. The hub closes connections for it.
const RefusedHost = "refused.invalid"

// CredentialGrant has an object name Secrets of a namespace of its own cluster, for proxies
// of another one. Sources of the hub give it; no manifest can ask for it (R04, ADR 122).
// Without From, a proxy gets credentials of its own namespace.
type CredentialGrant struct {
	From string // the namespace of the Secrets; files are not meant
	To   string // the namespace of the proxies that may have them, and no others
	Only bool   // the object is for proxies of the namespace To and does not concern others
}

// Concerns reports whether the object may be for proxies of the namespace.
func (g CredentialGrant) Concerns(namespace string) bool { return !g.Only || g.To == namespace }

// Decoded returns the spec, whether it is kept or not.
func (o *Object) Decoded() any {
	if o.Decode != nil {
		return o.Decode()
	}
	return o.Spec
}

// Equal compares all fields; the digest represents the spec.
func (o *Object) Equal(p *Object) bool {
	return o.Key == p.Key && o.Revision == p.Revision && o.Digest == p.Digest &&
		o.DryRun == p.DryRun && o.Credentials == p.Credentials && o.Origin.Equal(p.Origin) && maps.Equal(o.Labels, p.Labels) &&
		o.Created.Equal(p.Created) && slices.Equal(o.Names, p.Names) && slices.Equal(o.ProxyLabels, p.ProxyLabels)
}

// Older reports whether o was made before p. Where two objects say different things, the
// older one holds.
func (o *Object) Older(p *Object) bool { return o.CompareAge(p) < 0 }

// CompareAge orders the older object first, and objects of equal age, such as those
// of one apply, as Istio orders them: by name, then by namespace.
func (o *Object) CompareAge(p *Object) int {
	return cmp.Or(o.Created.Compare(p.Created), cmp.Compare(o.Key.Name, p.Key.Name), o.Key.Compare(p.Key))
}

// Wildcards returns the names under which an object that names the hostname
// may be found, the most specific first: the name itself, then each wildcard
// that covers it, then "*".
func Wildcards(host Hostname) []string {
	names := make([]string, 1, 2+strings.Count(string(host), "."))
	names[0] = string(host)
	for rest := strings.TrimPrefix(string(host), "*."); ; {
		_, after, found := strings.Cut(rest, ".")
		if !found {
			break
		}
		names = append(names, "*."+after)
		rest = after
	}
	return append(names, "*")
}
