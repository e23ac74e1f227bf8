package crd

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

// The codes of problems beside those of schemas.
const (
	codeNotAttached = "CLUSTER_NOT_ATTACHED" // a cluster that is to be read
	codeOff         = "SOURCE_OFF"           // the config file of the hub excludes custom resources
	codeKindRefused = "KIND_REFUSED"         // a kind that is to be read, and is not known or never read
	codeKindLacking = "KIND_NOT_SERVED"      // a cluster does not serve a kind of which there are objects
	codeVersion     = "VERSION_UNKNOWN"      // a cluster serves a kind only in versions that the hub does not know
	codeUnreachable = "UNREACHABLE"          // a cluster
	codeUnreadable  = "UNREADABLE"           // objects of a kind
	codeHidden      = "HIDDEN_BY"            // a cluster of higher precedence has the object too
)

const mostMessage = 1024 // bytes

// manifests are those of deploy/kubernetes that grant the right to read kinds, by group, where it is
// not that for custom resources.
var manifests = map[string]string{
	federation.GatewayAPI.Gateway.Group: "gateway-api.yaml", federation.IngressKind.Group: "ingresses.yaml",
}

// coreManifests are those for kinds of Kubernetes' core.
var coreManifests = map[federation.Kind]string{
	federation.ConfigMapKind: "backend-authorities.yaml",
	federation.NamespaceKind: "reader.yaml",
}

// manifestOf is the manifest that grants the right to read objects of a kind.
func manifestOf(kind federation.Kind) string {
	return "deploy/kubernetes/" + cmp.Or(coreManifests[kind], manifests[kind.Group], "custom-resources.yaml")
}

// complain tells what is wrong, once. Before the first Update it is not known yet which
// clusters are missing.
func (s *Source) complain(to config.Sink, first bool) {
	problems, changed := s.wrong(first)
	if !changed {
		return
	}
	for _, p := range problems {
		if !slices.Contains(s.said, p) {
			s.o.Logger.Warn("custom resources of a cluster", "code", p.Code, "object", p.Object, "field", p.Field, "problem", p.Message)
		}
	}
	s.said = problems
	to.Trouble(slices.Clone(problems))
}

// wrong is all that is wrong, and whether it is not what was said.
func (s *Source) wrong(first bool) (problems []config.Problem, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stale && s.said != nil {
		return nil, false
	}
	s.stale = first // clusters that are missing were excluded
	problems = s.problems(first)
	return problems, s.said == nil || !slices.Equal(s.said, problems)
}

// problems are all that is wrong; the caller holds mu.
func (s *Source) problems(first bool) []config.Problem {
	all := slices.Clone(s.plan.problems)
	for id := range s.plan.wanted {
		if s.clusters[id] == nil && !first {
			all = append(all, config.Problem{Code: codeNotAttached, Object: named(id), Message: fmt.Sprintf(
				"sources of MeshSettings name the cluster %s, and no Kubernetes cluster of this ID is attached: attach it, or remove it from sources",
				id)})
		}
	}
	for _, c := range s.order {
		all = append(all, c.problems()...)
	}
	for _, p := range s.hidden {
		all = append(all, p)
	}
	slices.SortFunc(all, config.Problem.Compare)
	return append([]config.Problem{}, config.Shown(all, "custom resources")...)
}

func named(id federation.ClusterID) string { return "cluster " + string(id) }

func (c *cluster) problems() (all []config.Problem) {
	if c.inTrouble() {
		all = append(all, config.Problem{Code: codeUnreachable, Object: named(c.id), Message: text.Cut(fmt.Sprintf(
			"the cluster is %s, and what was read of it%s stays: %s", c.status.Phase, c.since(), c.status.Message), mostMessage)})
	} else if c.unlooked != nil {
		all = append(all, *c.unlooked)
	}
	for _, p := range c.failed {
		all = append(all, p)
	}
	for kind, p := range c.kinds {
		if p.Code == codeVersion || c.has(kind) {
			all = append(all, p)
		}
	}
	all = append(all, c.ignored...)
	all = append(all, c.unwritten...)
	for p, t := range c.tables {
		for at, i := range t.bad {
			object := fmt.Sprintf("%s of %s", keyOf(p.kind, at).Title(), named(c.id))
			for _, field := range i.unknown {
				all = append(all, config.Problem{Code: federation.CodeNotHonoured, Object: object, Field: field.Field, Message: field.Message})
			}
			for _, wrong := range i.problems {
				fate := "; the object is not used"
				if i.object != nil {
					fate = "; its last valid form stays"
				}
				all = append(all, config.Problem{
					Code: string(wrong.Code), Object: object, Field: wrong.Field,
					Message: wrong.Message + fate,
				})
			}
		}
	}
	return all
}

// since tells when a run of the hub that ended read what there is.
func (c *cluster) since() string {
	if c.saved.IsZero() {
		return ""
	}
	return " until " + c.saved.Format(time.RFC3339) + ", before the hub started,"
}

// has reports whether there are objects of the kind.
func (c *cluster) has(kind federation.Kind) bool {
	for p, t := range c.tables {
		if p.kind == kind && len(t.items) > 0 {
			return true
		}
	}
	return false
}
