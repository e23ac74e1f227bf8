package registries

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
)

// Claims lets several sources name clusters. Of those that name the same ID one
// has it: the first by rank, then by name, never by arrival. What the others say
// waits, and is shown as a problem of the cluster. Its methods and those of its
// sources are safe for concurrent use.
type Claims struct {
	to *Supervisor
	mu sync.Mutex
	of map[federation.ClusterID][]claim // the first one counts
	aliases
}

// claim is what a source says of a cluster.
type claim struct {
	by      *Source
	cluster Cluster
	refused string // why it cannot be attached; empty: it can
}

// NewClaims decides for the supervisor. Nobody else should attach to it what a
// source may name.
func NewClaims(to *Supervisor) *Claims {
	return &Claims{to: to, of: map[federation.ClusterID][]claim{}, aliases: newAliases()}
}

// Source is one that names clusters, each at most once.
type Source struct {
	claims *Claims
	rank   int
	name   string
	owner  string
	yields bool
}

// Source makes a source of that rank; the lower number comes first. The name is
// for people and tells it from others of the rank. The owner is that of its
// clusters.
func (c *Claims) Source(rank int, name, owner string) *Source {
	return &Source{claims: c, rank: rank, name: name, owner: owner}
}

// Yielding makes a source that is no operator's: where one of an operator takes an
// ID from it, whatever cluster that one leads to is believed.
func (c *Claims) Yielding(rank int, name, owner string) *Source {
	s := c.Source(rank, name, owner)
	s.yields = true
	return s
}

// Holder names the source that has the ID, and tells whether that one yields.
func (c *Claims) Holder(id federation.ClusterID) (name string, yields, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of[id]) == 0 {
		return "", false, false
	}
	first := c.of[id][0].by
	return first.name, first.yields, true
}

// Attach attaches the cluster, or takes up what is new about it, if the source
// has its ID; see Supervisor.Attach.
func (s *Source) Attach(cluster Cluster) {
	cluster.Owner, cluster.rank = s.owner, s.rank
	s.claims.put(claim{by: s, cluster: cluster})
}

// Refuse shows a cluster that cannot be attached; see Supervisor.Refuse.
func (s *Source) Refuse(id federation.ClusterID, spec federation.ClusterSpec, message string) {
	s.claims.put(claim{by: s, cluster: Cluster{ID: id, Spec: spec}, refused: message})
}

// Detach takes back what the source said of the cluster. It goes, unless another
// source names it: that one has it then, without a gap.
func (s *Source) Detach(id federation.ClusterID) {
	c := s.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.of[id])
	if before == 0 {
		return
	}
	c.of[id] = slices.DeleteFunc(c.of[id], func(other claim) bool { return other.by == s })
	switch {
	case len(c.of[id]) == before:
	case len(c.of[id]) == 0:
		delete(c.of, id)
		c.to.Detach(id)
		c.grant("")
		c.showRefused()
	default:
		c.to.Problem(id, problemOf(s), nil)
		c.to.Leaving(id, false)
		c.settle(id)
	}
}

func (c *Claims) put(new claim) {
	id := new.cluster.ID
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.DeleteFunc(c.of[id], func(other claim) bool { return other.by == new.by })
	at, _ := slices.BinarySearchFunc(all, new, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.by.rank, b.by.rank), cmp.Compare(a.by.name, b.by.name))
	})
	if at == 0 && len(all) > 0 && all[0].by.yields && !new.by.yields {
		new.cluster.Believe = true
	}
	c.of[id] = slices.Insert(all, at, new)
	c.settle(id)
}

// settle lets the first claim count and shows the others. The caller holds mu.
func (c *Claims) settle(id federation.ClusterID) {
	first := c.of[id][0]
	defer func() { c.of[id][0].cluster.Believe = false }() // it counts once
	c.grant(id)
	c.admit(first)
	c.showRefused()
	c.to.Problem(id, problemOf(first.by), nil)
	for _, other := range c.of[id][1:] {
		c.to.Problem(id, problemOf(other.by), &federation.Problem{
			Code: CodeDuplicateID, Object: "cluster " + string(id), Field: other.by.name,
			Message: fmt.Sprintf("the ID %s is taken by %s; this cluster is skipped, give it another ID", id, first.by.name),
		})
	}
}

// CodeDuplicateID is the code of the problem that several sources name one ID.
const CodeDuplicateID = "DUPLICATE_CLUSTER_ID"

func problemOf(s *Source) string { return "claim of " + s.name }
