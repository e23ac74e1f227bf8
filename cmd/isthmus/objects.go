package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
)

// objectClusters keeps the registries in step with the Cluster objects of the
// configuration.
type objectClusters struct {
	sources clusterSources
	with    surroundings
	vault   *attach.Vault
	views   *config.Aggregate
	hub     federation.ClusterID
	sample  []clusterConfig // attached until there is an object
	first   func()          // called after the first look
}

// run follows the configuration until the context ends.
func (o objectClusters) run(ctx context.Context) error {
	view, err := o.views.WaitSynced(ctx)
	if err != nil {
		return nil // the hub ends
	}
	said := map[federation.ClusterID]*config.Object{}
	o.follow(view, said)
	if len(said) == 0 {
		for _, c := range o.sample {
			cluster, err := c.registry(o.with, "")
			if err != nil {
				return err
			}
			o.sources.sample.Attach(cluster)
		}
	}
	o.sources.supervisor.Forget("object")
	o.first()
	for {
		select {
		case <-view.Superseded():
		case <-ctx.Done():
			return nil
		}
		view = o.views.Latest()
		if o.follow(view, said) && len(said) > 0 {
			for _, c := range o.sample {
				o.sources.sample.Detach(c.ID)
			}
		}
	}
}

// follow takes up what is new about Cluster objects and tells whether anything
// was.
func (o objectClusters) follow(view *config.View, said map[federation.ClusterID]*config.Object) (changed bool) {
	there := map[federation.ClusterID]bool{}
	for object := range view.State.ObjectsOf(federation.ClusterKind) {
		id := federation.ClusterID(object.Key.Name)
		there[id] = true
		if said[id] == object {
			continue
		}
		changed = true
		said[id] = object
		o.take(view, object)
	}
	for id := range said {
		if !there[id] {
			changed = true
			delete(said, id)
			o.with.logger.Info("detaching a cluster: its object is gone", "cluster", id)
			o.sources.objects.Detach(id)
		}
	}
	return changed
}

func (o objectClusters) take(view *config.View, object *config.Object) {
	id := federation.ClusterID(object.Key.Name)
	decoded, ok := view.State.Decoded(object.Key)
	if !ok {
		return // it is set aside, and shown so; what runs goes on
	}
	if id == o.hub {
		o.with.logger.Warn("a Cluster object is skipped: the hub itself has this ID", "cluster", id)
		return
	}
	c := configOf(id, decoded.Spec.(*federation.ClusterObject))
	version := attach.VersionOf(object)
	cluster, err := o.registry(c, version)
	switch {
	case err != nil:
		o.sources.objects.Refuse(id, c.spec(), err.Error())
	case c.Provider == federation.Kubernetes && version == "":
		o.sources.objects.Refuse(id, c.spec(), fmt.Sprintf("it has no credentials: isthmus cluster rotate %s --kubeconfig FILE gives it some", id))
	default:
		o.sources.objects.Attach(cluster)
	}
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
