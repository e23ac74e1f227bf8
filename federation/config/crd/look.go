package crd

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// served is how the cluster serves a kind.
type served struct {
	kind     schema.Kind
	resource apischema.GroupVersionResource
	status   bool // what is needed to write the status of objects is kept
}

// findings are what a look at a cluster found.
type findings struct {
	places map[place]served
	kinds  map[federation.Kind]config.Problem // why others cannot be read
	// ignored reports kinds that the hub does not take, if there are objects.
	ignored []config.Problem
}

// discover asks the cluster which of the wanted kinds it serves.
func (f *clusterReader) discover(ctx context.Context, w *selection) (found findings, err error) {
	found = findings{places: map[place]served{}, kinds: map[federation.Kind]config.Problem{}}
	err = f.cluster.Read(ctx, func(ctx context.Context, client clients.Interface) error {
		asked := &discovered{client: client, groups: map[string][]string{}, resources: map[string][]metav1.APIResource{}}
		at := map[federation.Kind]served{}
		for _, k := range w.kinds {
			version, problem, err := asked.version(ctx, k)
			if err != nil {
				return err
			}
			if problem.Code != "" {
				problem.Object = fmt.Sprintf("%s of %s", apischema.GroupResource{Group: k.Group, Resource: k.Plural}, named(f.id))
				found.kinds[k.Kind] = problem
				continue
			}
			at[k.Kind] = served{
				k,
				apischema.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Plural},
				w.status && !onlyByName(k.Kind),
			}
		}
		for p := range w.places() {
			if s, serves := at[p.kind]; serves {
				found.places[p] = s
			}
		}
		if w.ignored {
			found.ignored = f.ignored(ctx, asked, w)
		}
		return nil
	})
	return found, err
}

// ignored reports the kinds that the hub does not take, of which there are objects in the wanted namespaces. One that
// cannot be listed is not reported: most clusters that serve it have no object of it, and the objects that the hub takes are read.
func (f *clusterReader) ignored(ctx context.Context, asked *discovered, w *selection) (all []config.Problem) {
	for _, k := range f.of.o.Ignored {
		version, problem, err := asked.version(ctx, k)
		if err != nil || problem.Code != "" {
			continue
		}
		resource := apischema.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Plural}
		for _, namespace := range w.namespaces {
			list, err := f.cluster.Dynamic().Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && len(list.Items) > 0 {
				all = append(all, config.Problem{
					Code: federation.CodeNotHonoured, Object: fmt.Sprintf("%s of %s", resource.GroupResource(), named(f.id)),
					Message: fmt.Sprintf("the hub does not support this kind: its objects, such as %s/%s, have no effect",
						list.Items[0].GetNamespace(), list.Items[0].GetName()),
				})
				break
			}
		}
	}
	return all
}

// discovered is what the API server said about its groups, each asked for once.
type discovered struct {
	client    clients.Interface
	groups    map[string][]string // versions
	resources map[string][]metav1.APIResource
}

// version is the version in which a kind is read: that in which the hub stores it, or else
// another one that the hub knows. Without one, the problem says why.
func (d *discovered) version(ctx context.Context, k schema.Kind) (string, config.Problem, error) {
	serves, err := d.versions(ctx, k.Group)
	if err != nil {
		return "", config.Problem{}, err
	}
	known := append([]string{k.Storage}, k.Versions...)
	for _, version := range known {
		if !slices.Contains(serves, version) {
			continue
		}
		has, err := d.has(ctx, k, version)
		if err != nil || has {
			return version, config.Problem{}, err
		}
	}
	for _, version := range serves {
		if slices.Contains(known, version) {
			continue
		}
		if has, err := d.has(ctx, k, version); err != nil {
			return "", config.Problem{}, err
		} else if has {
			return "", config.Problem{Code: codeVersion, Message: fmt.Sprintf(
				"the cluster serves version %s, which the hub does not know: serve one of %v there, or update the hub; what was read before stays",
				version, k.Versions)}, nil
		}
	}
	return "", config.Problem{
		Code:    codeKindLacking,
		Message: "the cluster does not serve this kind any more; what was read before stays until it does, or until the kind is excluded from sources of MeshSettings",
	}, nil
}

// versions are those in which the server has the group.
func (d *discovered) versions(ctx context.Context, group string) ([]string, error) {
	if versions, asked := d.groups[group]; asked {
		return versions, nil
	}
	if group == "" {
		return []string{"v1"}, nil // the core of Kubernetes, which every cluster serves
	}
	var about metav1.APIGroup
	err := d.client.Discovery().RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&about)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, listwatch.AccessError{Verb: "get", Resource: "/apis/" + group, Err: err}
	}
	versions := []string{}
	for _, v := range about.Versions {
		versions = append(versions, v.Version)
	}
	d.groups[group] = versions
	return versions, nil
}

// has reports whether the server has the kind in the version.
func (d *discovered) has(ctx context.Context, k schema.Kind, version string) (bool, error) {
	at := apischema.GroupVersion{Group: k.Group, Version: version}.String()
	resources, asked := d.resources[at]
	if !asked {
		var err error
		resources, err = listwatch.Served(ctx, d.client, at)
		if err != nil {
			return false, err
		}
		d.resources[at] = resources
	}
	return slices.ContainsFunc(resources, func(r metav1.APIResource) bool {
		return r.Name == k.Plural && r.Kind == k.Name && r.Namespaced == k.Namespaced
	}), nil
}

// discovered uses what discover found, or keeps why it failed.
func (f *clusterReader) discovered(w *selection, found findings, err error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	defer f.of.wake.Notify()
	c := f.of.clusters[f.id]
	if c == nil || c.want != w {
		return
	}
	f.of.stale = true
	c.unlooked = nil
	if err != nil {
		if !listwatch.Interrupted(err) {
			c.unlooked = &config.Problem{
				Code: codeUnreadable, Object: named(f.id),
				Message: "which kinds the cluster serves cannot be read, and what was read of it stays: " + listwatch.Message(err, kube.Explain),
			}
		}
		return
	}
	c.kinds, c.ignored = found.kinds, found.ignored
	for p := range c.failed {
		if _, serves := found.places[p]; !serves {
			delete(c.failed, p)
		}
	}
	if c.complete {
		return
	}
	clear(c.pending)
	for p := range found.places {
		if t := c.tables[p]; t == nil || t.turn == 0 {
			c.pending[p] = true
		}
	}
	for p := range c.failed {
		delete(c.pending, p)
	}
	c.looked = true
	f.of.finish(c)
}

// finish has the objects of a cluster count once all of it was read or refused; the caller
// holds mu.
func (s *Source) finish(c *cluster) {
	if c.complete || !c.looked || len(c.pending) > 0 {
		return
	}
	c.complete, c.unsaved.whole, s.stale = true, true, true
	s.cache.wake.Notify()
	s.touch(c.keys()...)
	count := 0
	for _, t := range c.tables {
		count += len(t.items)
	}
	s.o.Logger.Info("custom resources of a cluster were read", "cluster", string(c.id), "objects", count)
}
