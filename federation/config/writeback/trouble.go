package writeback

import (
	"fmt"
	"regexp"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// transition is the part of a status that differs although it says the same.
var transition = regexp.MustCompile(`"lastTransitionTime":"[^"]*"`)

// timeless is a patch without times.
func timeless(patch []byte) string { return string(transition.ReplaceAll(patch, nil)) }

// ingresses is the resource of Ingresses.
const ingresses = "ingresses.networking.k8s.io"

// mostNamed bounds the problems of a cluster.
const mostNamed = 20

// complain tells the sources why status is not written.
func (w *Writer) complain() {
	type told struct {
		to       Reporter
		id       federation.ClusterID
		problems []config.Problem
	}
	var all []told
	w.mu.Lock()
	for id, t := range w.clusters {
		for ofIngresses, to := range map[bool]Reporter{false: w.parts.Resources, true: w.parts.Ingresses} {
			problems := slices.Concat(t.forbidden(ofIngresses), w.ofObjects(id, ofIngresses))
			slices.SortFunc(problems, config.Problem.Compare)
			problems = problems[:min(len(problems), mostNamed)]
			if len(problems) > 0 || t.told[ofIngresses] > 0 {
				all = append(all, told{to, id, problems})
			}
			t.told[ofIngresses] = len(problems)
		}
	}
	w.mu.Unlock()
	for _, t := range all {
		t.to.StatusTrouble(t.id, t.problems)
	}
}

// forbidden are the problems with resources of the cluster, of its Ingresses or of the others;
// the caller holds mu.
func (t *target) forbidden(ofIngresses bool) (all []config.Problem) {
	for resource, b := range t.blocked {
		if resource != "" && (resource == ingresses) == ofIngresses {
			all = append(all, b.problem)
		}
	}
	return all
}

// ofObjects are the problems with single objects of a cluster; the caller holds mu.
func (w *Writer) ofObjects(id federation.ClusterID, ofIngresses bool) (all []config.Problem) {
	for at := range w.troubled {
		r := w.records[at]
		switch {
		case r == nil || r.refused == nil && r.undone < contested:
			delete(w.troubled, at)
		case at.cluster != id || (at.key.Of() == federation.IngressKind) != ofIngresses:
		case r.refused != nil:
			all = append(all, r.refused.problem)
		default:
			all = append(all, config.Problem{
				Code: codeContested, Object: fmt.Sprintf("%s of cluster %s", at.key.Title(), id),
				Field: "status", Message: fmt.Sprintf(
					"another controller overwrites what the hub writes into the status; the hub writes it at most every %s", r.pause),
			})
		}
	}
	return all
}
