package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

// CodeDuplicateID is the code of the problem that several sources name one ID.
const CodeDuplicateID = "DUPLICATE_CLUSTER_ID"

// Plan is which clusters are to be attached. It is not changed after it was made.
type Plan struct {
	Clusters map[federation.ClusterID]Attachment
	// Problems by the cluster at which they are shown, and by name.
	Problems map[federation.ClusterID]map[string]federation.Problem
	names    map[string]federation.ClusterID // IDs and aliases
	ended    []Holder                        // whose objects count no more

	superseded chan struct{}
}

// Wanted decides which clusters are attached. It is a pure function.
func Wanted(in Inputs) *Plan {
	ended := in.ended()
	of, problems := in.claims(ended)
	p := &Plan{
		ended: ended, Clusters: map[federation.ClusterID]Attachment{}, Problems: map[federation.ClusterID]map[string]federation.Problem{},
		superseded: make(chan struct{}),
	}
	for id, all := range of {
		p.Clusters[id] = all[0]
		p.Problems[id] = map[string]federation.Problem{}
		maps.Copy(p.Problems[id], problems[id])
		for _, other := range all[1:] {
			d := duplicate{id: id, field: other.Source.Name, holder: all[0].Source.Name}
			p.Problems[id]["claim of "+other.Source.Name] = d.problem()
		}
	}
	for _, d := range in.duplicates() {
		p.Problems[d.id][d.field] = d.problem()
	}
	p.grantAliases()
	return p
}

// grantAliases gives each alias to one cluster: the first by the rank and the name of
// its source, then by its ID. An ID is never an alias.
func (p *Plan) grantAliases() {
	order := slices.SortedFunc(maps.Keys(p.Clusters), func(a, b federation.ClusterID) int {
		return cmp.Or(p.Clusters[a].compare(p.Clusters[b]), cmp.Compare(a, b))
	})
	p.names = map[string]federation.ClusterID{}
	for _, id := range order {
		p.names[string(id)] = id
	}
	for _, id := range order {
		a := p.Clusters[id]
		var granted []string
		for _, alias := range a.Spec.Aliases.List() {
			holder, taken := p.names[alias]
			if taken && holder != id {
				p.Problems[id]["alias "+alias] = duplicateAlias(alias, id, holder)
				continue
			}
			p.names[alias] = id
			granted = append(granted, alias)
		}
		a.Spec.Aliases = federation.NewAliases(granted)
		p.Clusters[id] = a
	}
}

func duplicateAlias(alias string, id, holder federation.ClusterID) federation.Problem {
	return federation.Problem{
		Code: "DUPLICATE_CLUSTER_ALIAS", Object: "cluster " + string(id), Field: "aliases",
		Message: fmt.Sprintf("the alias %s already names the cluster %s, so proxies with this cluster ID are not of %s; give this cluster another alias", alias, holder, id),
	}
}

// Holder names the source that has the ID, and reports whether that one yields to
// operators.
func (p *Plan) Holder(id federation.ClusterID) (name string, yields, found bool) {
	a, found := p.Clusters[id]
	return a.Source.Name, a.Source.Yields, found
}

// AliasHolder is the cluster that has the name, as its ID or as an alias.
func (p *Plan) AliasHolder(name string) (federation.ClusterID, bool) {
	id, taken := p.names[name]
	return id, taken
}

// Superseded is closed once there is a newer plan and it was carried out.
func (p *Plan) Superseded() <-chan struct{} { return p.superseded }

// Registries runs what is attached; a registries.Supervisor does.
type Registries interface {
	Attach(registries.Cluster)
	Refuse(id federation.ClusterID, spec federation.ClusterSpec, message string)
	Detach(federation.ClusterID)
	Problem(id federation.ClusterID, name string, p *federation.Problem)
	Leaving(id federation.ClusterID, leaving bool)
	Forget(owner string)
	Saved() ([]registries.Saved, error)
}

// apply carries out what differs from the plan before.
func (p *Plan) apply(before *Plan, to Registries) {
	for _, id := range slices.Sorted(maps.Keys(before.Clusters)) {
		if _, stays := p.Clusters[id]; !stays {
			to.Detach(id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Clusters)) {
		is := p.Clusters[id]
		was, there := before.Clusters[id]
		if there && was.Source != is.Source {
			to.Leaving(id, false) // another source still names it
		}
		anew := !there || !was.same(is)
		if anew {
			is.admit(there && was.Source.Yields && !is.Source.Yields, to)
		}
		p.show(id, before.Problems[id], anew, to)
	}
}

// admit attaches the cluster, or shows why it cannot be attached.
func (a Attachment) admit(confirmed bool, to Registries) {
	if a.Refused != "" {
		to.Refuse(a.ID, a.Spec, a.Refused)
		return
	}
	c := a.Cluster
	c.Owner, c.Rank, c.Confirmed = a.Source.Owner, a.Source.Rank, confirmed
	to.Attach(c)
}

// show shows the problems of a cluster: all of them if it was admitted again.
func (p *Plan) show(id federation.ClusterID, before map[string]federation.Problem, anew bool, to Registries) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := p.Problems[id][name]; !stays {
			to.Problem(id, name, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Problems[id])) {
		problem := p.Problems[id][name]
		if anew || before[name] != problem {
			to.Problem(id, name, &problem)
		}
	}
}
