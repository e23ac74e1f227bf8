package envoy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"
	envoyfilters "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1"
	telemetry "istio.io/api/telemetry/v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// manifest is what the tests of this room need of an object's metadata.
type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// config adds Istio's objects of the networking group, given as YAML documents
// with full hostnames.
func (w *fixture) config(t fataler, documents string) *fixture {
	t.Helper()
	e := federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{}}}
	for text := range strings.SplitSeq(documents, "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("a manifest: %v\n%s", err, text)
		}
		o := &federation.Object{
			Key:    federation.ObjectKey{Group: "networking.istio.io", Kind: m.Kind, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name},
			Digest: string(m.Spec), Labels: m.Metadata.Labels, Created: m.Metadata.CreationTimestamp,
			DryRun: m.Metadata.Annotations["istio.io/dry-run"] == "true",
		}
		if m.Kind == "MeshSettings" {
			spec := &federation.MeshSettings{}
			if err := json.Unmarshal(m.Spec, spec); err != nil {
				t.Fatalf("%s: %v", o.Key, err)
			}
			o.Key, o.Spec = federation.MeshSettingsKey, spec
		} else {
			spec := specOf(t, m.Kind)
			if err := protojson.Unmarshal(m.Spec, spec); err != nil {
				t.Fatalf("%s: %v", o.Key, err)
			}
			o.Spec = spec
		}
		index(o)
		e.Objects.Set[o.Key] = o
	}
	return w.apply(e)
}

func specOf(t fataler, kind string) proto.Message {
	switch kind {
	case "VirtualService":
		return &networking.VirtualService{}
	case "DestinationRule":
		return &networking.DestinationRule{}
	case "Gateway":
		return &networking.Gateway{}
	case "ServiceEntry":
		return &networking.ServiceEntry{}
	case "WorkloadEntry":
		return &networking.WorkloadEntry{}
	case "WorkloadGroup":
		return &networking.WorkloadGroup{}
	case "Sidecar":
		return &networking.Sidecar{}
	case federation.AuthorizationPolicyKind.Name:
		return &security.AuthorizationPolicy{}
	case federation.PeerAuthenticationKind.Name:
		return &security.PeerAuthentication{}
	case "RequestAuthentication":
		return &security.RequestAuthentication{}
	case "EnvoyFilter":
		return &envoyfilters.EnvoyFilter{}
	case "Telemetry":
		return &telemetry.Telemetry{}
	}
	t.Fatalf("the tests of this room know no %s", kind)
	return nil
}

// index has readers find the object.
func index(o *federation.Object) {
	switch o.Spec.(type) {
	case *security.AuthorizationPolicy, *security.PeerAuthentication, *security.RequestAuthentication:
		o.Key.Group = federation.AuthorizationPolicyKind.Group
	case *telemetry.Telemetry:
		o.Key.Group = "telemetry.istio.io"
	}
	kind.Index(kind.Decoded{Object: o})
	if names := indexNames(o.Spec); len(names) > 0 {
		elsewhere := slices.DeleteFunc(o.Names, func(name string) bool { return !strings.HasPrefix(name, kind.Elsewhere) })
		o.Names = append(names, elsewhere...)
	}
}

// indexNames are the names by which readers find the object: hosts as they are written.
func indexNames(spec any) (names []string) {
	switch spec := spec.(type) {
	case *networking.VirtualService:
		names = slices.Clone(spec.GetHosts())
		for _, gateway := range spec.GetGateways() {
			if gateway != "mesh" {
				names = append(names, "gateway:"+gateway)
			}
		}
		own := len(spec.GetExportTo()) > 0 && !slices.Contains(spec.GetExportTo(), "*")
		for _, match := range connectionMatches(spec) {
			own = own || len(match.GetSourceLabels()) > 0 || match.GetSourceNamespace() != ""
		}
		if own && len(spec.GetTls())+len(spec.GetTcp()) > 0 {
			names = append(names, "connections:own")
		} else if len(spec.GetExportTo()) == 0 && len(spec.GetTls())+len(spec.GetTcp()) > 0 {
			names = append(names, "connections:default")
		}
	case *networking.DestinationRule:
		names = []string{spec.GetHost()}
		for _, namespace := range spec.GetExportTo() {
			if namespace != "." && namespace != "*" {
				names = append(names, "export:"+namespace)
			}
		}
	}
	return names
}

type sourceMatch interface {
	GetSourceLabels() map[string]string
	GetSourceNamespace() string
}

func connectionMatches(spec *networking.VirtualService) []sourceMatch {
	var all []sourceMatch
	for _, route := range spec.GetTls() {
		for _, match := range route.GetMatch() {
			all = append(all, match)
		}
	}
	for _, route := range spec.GetTcp() {
		for _, match := range route.GetMatch() {
			all = append(all, match)
		}
	}
	return all
}
