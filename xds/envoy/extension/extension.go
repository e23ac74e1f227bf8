// Package extension finds the extension providers of MeshSettings, and the clusters by which
// proxies reach them.
package extension

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Provider is an extension provider as Istio's mesh configuration has it.
type Provider = mesh.MeshConfig_ExtensionProvider

// Named is the provider of that name.
func Named(v *facet.View, name string) (*Provider, error) {
	found, ok := v.Reader.Mesh().ExtensionProvider(name)
	if !ok {
		return nil, fmt.Errorf("MeshSettings have no provider %q in extensionProviders", name)
	}
	p := &Provider{}
	if err := json.Unmarshal(found.Config, p); err != nil {
		return nil, fmt.Errorf("the provider %q of MeshSettings cannot be read: %w", name, err)
	}
	return p, nil
}

// Server is where a provider listens.
type Server struct {
	Cluster string
	Host    string
	Port    uint16
}

// located is a provider that is a service.
type located interface {
	GetService() string // HOST, or NAMESPACE/HOST
	GetPort() uint32
}

// ServerOf is where the provider listens, for the view's proxies. It reads the service's spec and
// not its endpoints.
func ServerOf(v *facet.View, p located) (Server, error) {
	namespace, name, scoped := strings.Cut(p.GetService(), "/")
	if !scoped {
		namespace, name = "", p.GetService()
	}
	host, number := federation.Hostname(strings.ToLower(name)), uint16(min(p.GetPort(), math.MaxUint16))
	owner, err := ownerAt(v, host, number)
	named := owner.Service
	if real, alias := service.AliasAmong(v, host, owner); alias != nil {
		named = alias
		owner, err = ownerAt(v, real, number)
		if err == nil && service.IsAlias(v, owner.Service) {
			return Server{}, fmt.Errorf("the provider's service %s leads over %s to other names only", host, real)
		}
	}
	if err != nil {
		return Server{}, err
	}
	if scoped && named.Key.Namespace != namespace {
		return Server{}, fmt.Errorf("the provider's service %s is that of namespace %q for this proxy, not of %q", host,
			named.Key.Namespace, namespace)
	}
	return Server{Cluster: resource.SubsetClusterName(owner.Service.Key.Hostname, number, ""), Host: string(host), Port: number}, nil
}

func ownerAt(v *facet.View, host federation.Hostname, number uint16) (service.ServedPort, error) {
	services := service.SeenAt(v, host)
	if len(services) == 0 {
		return service.ServedPort{}, fmt.Errorf("the provider's service %s is not a service that this proxy sees", host)
	}
	owner, _ := service.OwnerAmong(v, services, number)
	if owner.Service == nil {
		return owner, fmt.Errorf("the provider's service %s has no TCP port %d", host, number)
	}
	return owner, nil
}
