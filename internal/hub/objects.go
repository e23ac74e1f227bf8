package hub

import (
	"cmp"
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
	"isthmus.dev/isthmus/registries/reconcile"
)

// objectClusters makes clusters of Cluster objects.
type objectClusters struct {
	with  surroundings
	vault *attach.Vault
}

// claim is what a Cluster object says.
func (o objectClusters) claim(object *config.Object) reconcile.Claim {
	c, err := configOf(object)
	if err != nil {
		return reconcile.Refuse(c.ID, c.spec(), err.Error())
	}
	k, err := o.with.kindOf(c.Provider)
	if err != nil {
		return reconcile.Refuse(c.ID, c.spec(), err.Error())
	}
	version := attach.VersionOf(object)
	if k.NeedsCredentials && version == "" {
		return reconcile.Refuse(c.ID, c.spec(), fmt.Sprintf("it has no credentials: isthmus cluster rotate %s --kubeconfig FILE gives it some", c.ID))
	}
	cluster, err := o.registry(k, c, version)
	if err != nil {
		return reconcile.Refuse(c.ID, c.spec(), err.Error())
	}
	return reconcile.Claim{Cluster: cluster}
}

// configOf is what the object says in the words of the config file.
func configOf(object *config.Object) (clusterConfig, error) {
	var m struct {
		Spec clusterConfig `json:"spec"`
	}
	err := json.Unmarshal(object.Manifest, &m)
	m.Spec.ID = federation.ClusterID(object.Key.Name)
	return m.Spec, err
}

// registry is the cluster as the supervisor takes it: other credentials make
// another registry.
func (o objectClusters) registry(k provider.Kind, c clusterConfig, version string) (registries.Cluster, error) {
	fingerprint, err := c.fingerprint(cmp.Or(version, "none"))
	open := o.with.open(k, c)
	if version != "" {
		open = func(known federation.Identity) (registries.Registry, error) {
			return &storedRegistry{objectClusters: o, kind: k, cluster: c, version: version, known: known}, nil
		}
	}
	return registries.Cluster{ID: c.ID, Spec: c.spec(), Identified: k.Identified, Fingerprint: fingerprint, Open: open}, err
}
