package hub

import (
	"cmp"
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/reconcile"
)

// objectClusters makes clusters of Cluster objects.
type objectClusters struct {
	with  surroundings
	vault *attach.Vault
}

// claim is what a Cluster object says.
func (o objectClusters) claim(object *config.Object, spec *federation.ClusterObject) reconcile.Claim {
	c := configOf(federation.ClusterID(object.Key.Name), spec)
	version := attach.VersionOf(object)
	cluster, err := o.registry(c, version)
	switch {
	case err != nil:
		return reconcile.Refuse(c.ID, c.spec(), err.Error())
	case c.Provider == federation.Kubernetes && version == "":
		return reconcile.Refuse(c.ID, c.spec(), fmt.Sprintf("it has no credentials: isthmus cluster rotate %s --kubeconfig FILE gives it some", c.ID))
	}
	return reconcile.Claim{Cluster: cluster}
}

// configOf is what the object says in the words of the config file.
func configOf(id federation.ClusterID, spec *federation.ClusterObject) clusterConfig {
	c := clusterConfig{ID: id, Provider: spec.Provider, Network: spec.Network, Aliases: spec.Aliases}
	c.Limits = limitsConfig{Objects: spec.Limits.Objects, Pages: spec.Limits.Pages, Bytes: spec.Limits.Bytes}
	if spec.Precedence > 0 {
		c.Precedence = &spec.Precedence
	}
	switch spec.Provider {
	case federation.Kubernetes:
		c.Kubernetes = &kubernetesConfig{Context: spec.Kubernetes.Context}
	case federation.Consul:
		of := spec.Consul
		c.Consul = &consulConfig{
			Address: of.Address, Datacenter: of.Datacenter, Hostname: of.Hostname, Namespace: of.Namespace,
			InstancePort: of.InstancePort, ServicePort: of.ServicePort,
		}
	}
	return c
}

// registry is the cluster as the supervisor takes it: other credentials make
// another registry.
func (o objectClusters) registry(c clusterConfig, version string) (registries.Cluster, error) {
	k, err := kindOf(c.Provider)
	if err != nil {
		return registries.Cluster{}, err
	}
	depends := c
	depends.Precedence, depends.Aliases = nil, nil
	data, err := json.Marshal(depends)
	if err != nil {
		return registries.Cluster{}, err
	}
	open := k.open(o.with, c)
	if version != "" && k.openWith != nil {
		open = func(known federation.Identity) (registries.Registry, error) {
			return &storedRegistry{objectClusters: o, cluster: c, version: version, known: known, open: k.openWith}, nil
		}
	}
	return registries.Cluster{ID: c.ID, Spec: c.spec(), Fingerprint: digestOf(append(data, cmp.Or(version, "none")...)), Open: open}, nil
}
