package crd

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// everyNamespace means all namespaces in the settings.
const everyNamespace = "*"

// plan is what the settings of the mesh have read.
type plan struct {
	known    bool
	of       *config.Object         // from which it was made
	attached []federation.ClusterID // also; nil: whatever is attached
	wanted   map[federation.ClusterID]*selection
	problems []config.Problem
}

// selection is what is to be read of one cluster. It is never changed.
type selection struct {
	namespaces []string // "" alone: all
	kinds      []schema.Kind
	scope      federation.ClusterID // for whose proxies alone the objects are; empty: for all proxies
	status     bool                 // what is needed to write their status is kept
	ignored    bool                 // objects of kinds that the hub does not take are reported
}

// place is what one list and its watch read: a kind in one namespace, or in all of them.
type place struct {
	kind      federation.Kind
	namespace string // "": all, or the kind has none
}

// read applies the settings, and which clusters are attached where everything of them may
// be read. It reports whether that changed. Settings that cannot be decoded change nothing.
func (p *plan) read(state *config.State, snapshot *federation.Snapshot, o *Options, kinds map[federation.Kind]schema.Kind) (changed bool) {
	object, exists := state.Object(federation.MeshSettingsKey)
	if p.known && p.of == object && (o.Everywhere == nil || p.isOf(snapshot)) {
		return false
	}
	next := plan{known: true, of: object, wanted: map[federation.ClusterID]*selection{}}
	var settings *federation.MeshSettings
	if exists {
		decoded, ok := state.Decoded(federation.MeshSettingsKey)
		if !ok {
			return false
		}
		settings, _ = decoded.Spec.(*federation.MeshSettings)
	}
	switch {
	case o.Everywhere != nil:
		wanted, status := o.Everywhere(settings)
		next.everywhere(snapshot, wanted, status, kinds)
	case settings != nil && o.Off:
		next.off(settings.Sources)
	case settings != nil:
		next.add(settings.Sources, kinds)
	}
	for id, w := range next.wanted {
		if before := p.wanted[id]; before != nil && before.equal(w) {
			next.wanted[id] = before
		}
	}
	*p = next
	return true
}

// off reports the sources of the settings, of which none is read.
func (p *plan) off(sources []federation.ResourceSource) {
	if len(sources) > 0 {
		p.problems = append(p.problems, config.Problem{
			Code: codeOff, Object: federation.MeshSettingsKey.Title(), Field: "spec.sources",
			Message: "no custom resources are read: CRD is not one of sources in the config file of the hub; add it, or remove spec.sources",
		})
	}
}

// isOf reports whether the plan was made for the clusters that are attached.
func (p *plan) isOf(snapshot *federation.Snapshot) bool {
	n := 0
	for c := range snapshot.Clusters() {
		n++
		if n > len(p.attached) || p.attached[n-1] != c.ID {
			return false
		}
	}
	return n == len(p.attached)
}

// everywhere wants everything of every attached cluster that has objects, or nothing.
func (p *plan) everywhere(snapshot *federation.Snapshot, wanted, status bool, kinds map[federation.Kind]schema.Kind) {
	var sources []federation.ResourceSource
	for c := range snapshot.Clusters() {
		p.attached = append(p.attached, c.ID)
		if wanted && c.Spec.Provider.HasObjects() {
			sources = append(sources, federation.ResourceSource{Cluster: c.ID, Namespaces: []string{everyNamespace}, Status: status})
		}
	}
	p.add(sources, kinds)
}

func (w *selection) equal(o *selection) bool {
	return w.scope == o.scope && w.status == o.status && w.ignored == o.ignored && slices.Equal(w.namespaces, o.namespaces) &&
		slices.EqualFunc(w.kinds, o.kinds, func(a, b schema.Kind) bool { return a.Kind == b.Kind })
}

// add adds the sources of the settings.
func (p *plan) add(sources []federation.ResourceSource, kinds map[federation.Kind]schema.Kind) {
	for _, source := range sources {
		w := &selection{
			namespaces: slices.Clone(source.Namespaces), scope: source.Cluster, status: source.Status, ignored: len(source.Kinds) == 0,
		}
		if source.Scope == federation.ScopeMesh {
			w.scope = ""
		}
		if slices.Contains(w.namespaces, everyNamespace) {
			w.namespaces = []string{""}
		}
		named := map[string]bool{}
		for _, name := range source.Kinds {
			named[name] = true
		}
		for _, k := range slices.SortedFunc(maps.Keys(kinds), compareKinds) {
			if len(source.Kinds) == 0 && !onlyByName(k) || named[k.String()] {
				w.kinds = append(w.kinds, kinds[k])
				delete(named, k.String())
			}
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			p.problems = append(p.problems, refusedKind(source.Cluster, name))
		}
		p.wanted[source.Cluster] = w
	}
}

func compareKinds(a, b federation.Kind) int {
	return federation.ObjectKey{Group: a.Group, Kind: a.Name}.Compare(federation.ObjectKey{Group: b.Group, Kind: b.Name})
}

func refusedKind(id federation.ClusterID, name string) config.Problem {
	why := "the hub does not know this kind; write it as KIND.GROUP, such as VirtualService.networking.istio.io"
	if slices.ContainsFunc(withheld, func(k federation.Kind) bool { return k.String() == name }) {
		why = "objects of this kind are not read from a cluster: they attach clusters, or say what is read of them; apply them to the hub"
	}
	return config.Problem{
		Code: codeKindRefused, Object: federation.MeshSettingsKey.Title(), Field: fmt.Sprintf("spec.sources[cluster=%s].kinds", id),
		Message: fmt.Sprintf("%s: %s", name, why),
	}
}

// places are those of all kinds that are wanted, whether the cluster serves them or not.
// A kind without namespaces is read only with all namespaces.
func (w *selection) places() map[place]schema.Kind {
	all := map[place]schema.Kind{}
	for _, k := range w.kinds {
		for _, namespace := range w.namespaces {
			if k.Namespaced || namespace == "" {
				all[place{k.Kind, namespace}] = k
			}
		}
	}
	return all
}
