// Package validation checks what a schema cannot express: which fields of
// Istio's kinds exclude or need each other, and which values are valid. Istio's
// admission webhook refuses the same objects. The rules follow the reference of
// the API. They are pure functions over values; what depends on other objects is
// not checked here.
package validation

import (
	"encoding/json"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Problem is what is wrong with an object. Every code but NoEffect is a reason to
// refuse the object.
type Problem = schema.Problem

// NoEffect is the code of what is valid and does nothing.
const NoEffect schema.Code = "NO_EFFECT"

// checks has the rules of each kind. They get the object's namespace and its spec,
// in the kind's own type.
var checks = map[federation.Kind]func(namespace string, spec any) []Problem{
	networking("VirtualService"):                     typed(virtualService),
	networking("DestinationRule"):                    typed(destinationRule),
	networking("Gateway"):                            typed(gateway),
	networking("ServiceEntry"):                       typed(serviceEntry),
	networking("WorkloadEntry"):                      typed(workloadEntry),
	networking("WorkloadGroup"):                      typed(workloadGroup),
	networking("Sidecar"):                            typed(sidecar),
	networking("EnvoyFilter"):                        typed(envoyFilter),
	networking("ProxyConfig"):                        typed(proxyConfig),
	security("PeerAuthentication"):                   typed(peerAuthentication),
	security("RequestAuthentication"):                typed(requestAuthentication),
	security("AuthorizationPolicy"):                  typed(authorizationPolicy),
	{Group: "telemetry.istio.io", Name: "Telemetry"}: typed(telemetry),
}

func networking(name string) federation.Kind {
	return federation.Kind{Group: "networking.istio.io", Name: name}
}

func security(name string) federation.Kind {
	return federation.Kind{Group: "security.istio.io", Name: name}
}

func typed[T any](check func(namespace string, spec *T) []Problem) func(string, any) []Problem {
	return func(namespace string, spec any) []Problem {
		of, ok := spec.(*T)
		if !ok || of == nil {
			return nil
		}
		return check(namespace, of)
	}
}

// Spec checks a spec of the kind's own Go type, as objects of a snapshot have it.
func Spec(key federation.ObjectKey, spec any) []Problem {
	check, ok := checks[key.Of()]
	if !ok {
		return nil
	}
	return append(check(key.Namespace, spec), objectName(key)...)
}

// Check checks an object that passed its schema.
func Check(key federation.ObjectKey, object map[string]any) []Problem {
	if _, ok := checks[key.Of()]; !ok {
		return nil
	}
	raw, err := json.Marshal(object["spec"])
	if err != nil {
		return []Problem{{Code: schema.Invalid, Field: "spec", Message: err.Error()}}
	}
	spec, err := config.DecodeSpec(key.Of(), raw)
	if err != nil {
		return []Problem{{Code: schema.Invalid, Field: "spec", Message: err.Error()}}
	}
	return append(Spec(key, spec), Metadata(key, object)...)
}

// Refuse says why an object that passed its schema is refused nevertheless.
func Refuse(key federation.ObjectKey, object map[string]any) []Problem {
	return slices.DeleteFunc(Check(key, object), func(p Problem) bool { return p.Code == NoEffect })
}

// Schema is a schema with the rules of this package, for sources whose objects
// nobody applies.
type Schema struct{ *schema.Set }

// Admit validates an object as the schema does, then by the rules of its kind.
func (s Schema) Admit(wanted, old map[string]any) (map[string]any, []Problem) {
	object, problems := s.Set.Admit(wanted, old)
	if len(problems) > 0 {
		return nil, problems
	}
	if problems := Refuse(KeyOf(object), object); len(problems) > 0 {
		return nil, problems
	}
	return object, nil
}

// KeyOf is the key by which the rules of an object are found.
func KeyOf(object map[string]any) federation.ObjectKey {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	return federation.ObjectKey{Group: group, Kind: kind, Namespace: namespace, Name: name}
}
