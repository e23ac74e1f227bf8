// Package wanted computes the status that the hub writes into the objects of clusters: what
// is wanted as a function of a snapshot, of findings and of what proxies accepted, and what
// the status comes to beside what others wrote into it (ADR 144).
package wanted

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Finding is something that is wrong with an object.
type Finding struct {
	Code, Field, Message string
	Error                bool // else it is a warning
}

// Delivery counts the proxies of this hub that get something of an object.
type Delivery struct {
	Accepted, Waiting, Refused int
}

// News names the objects about which Findings and Delivered may tell something else than before,
// for the same snapshot.
type News struct {
	All      bool // of every object
	Objects  []federation.ObjectKey
	Services []federation.ServiceKey // of the objects that read them
	Moved    bool                    // of those that proxies have not accepted; which proxies get any may be different, too
}

// Mesh is what the status of an object is computed from.
type Mesh struct {
	Read *federation.Reader // sees the objects of all clusters
	// Gateways is how an object of the Gateway API is.
	Gateways func(federation.ObjectKey) (gatewayapi.Status, bool)
	// Findings are those of an object.
	Findings func(federation.ObjectKey) []Finding
	// Delivered counts the proxies that get something of the objects; false: it is not known.
	Delivered func(...federation.ObjectKey) (Delivery, bool)
	OtherHubs int // that serve proxies, too
	// MissingSecret says why gateways of a cluster lack a Secret; "": they do not, or it is not
	// known yet.
	MissingSecret func(cluster federation.ClusterID, secret gatewayapi.Secret) string
}

// Object is an object whose status is written.
type Object struct {
	Cluster    federation.ClusterID // that has it
	Key        federation.ObjectKey // under which it is configuration
	Generation int64                // of the cluster
	Hidden     string               // why another object of the key counts; empty: it counts
	Invalid    []schema.Problem     // why the hub does not use it as it is
	Unknown    []schema.Problem     // fields that the hub does not know
	Spec       map[string]any       // as the cluster has it, of one that is not valid
}

// Status is what the hub says about an object. A field that is nil is not the hub's.
type Status struct {
	Generation   int64
	Conditions   []Condition
	Listeners    []Listener
	Sets         int      // ListenerSets that give a Gateway listeners
	Parents      []Parent // of a route, or the ancestors of a policy
	Addresses    []Address
	Messages     []Message
	LoadBalancer []Address
	// Refused: the object is not used as it is. What the status says about its last valid form stays, with the
	// generation of that.
	Refused bool
}

// Condition is one of the conditions that are the hub's.
type Condition struct {
	Type, Status, Reason, Message string
	// Pending: the condition stays as it is if it is of this generation.
	Pending bool
}

// Listener is how a listener of a Gateway is.
type Listener struct {
	Name       string
	Attached   int
	Kinds      []federation.Kind
	Conditions []Condition
}

// Parent is how a route attaches to one of its parents, or how a policy is for a Gateway.
type Parent struct {
	Ref        map[string]any
	Controller string
	Conditions []Condition
}

// Address is an IP address or a DNS name.
type Address struct{ IP, Host string }

// Message is one of Istio's validation messages.
type Message struct{ Code, Level string }

// For is what the hub says about the object; nil: nothing. It is not known yet if known is
// false.
func For(m Mesh, o Object) (status *Status, known bool) {
	if gatewayapi.Translates(o.Key.Of()) {
		if !upToDate(m, o) {
			return nil, false
		}
	}
	row := rows[o.Key.Of()]
	if row.refused != nil && o.Hidden == "" && len(o.Invalid) > 0 {
		status = row.refused(m, o)
	} else {
		status = row.status(m, o)
	}
	if status != nil {
		status.Generation = o.Generation
	}
	return status, true
}

// upToDate reports whether the status of the Gateway API is of the object as it is now.
func upToDate(m Mesh, o Object) bool {
	now, exists := m.Read.Object(o.Key)
	if !exists || o.Hidden != "" {
		return true
	}
	status, known := m.Gateways(o.Key)
	return known && status.Digest == now.Digest
}

const (
	yes = "True"
	no  = "False"
)

func truth(is bool) string {
	if is {
		return yes
	}
	return no
}
