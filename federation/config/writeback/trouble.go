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

// mostContested bounds the objects of a cluster that are named as contested.
const mostContested = 20

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
			problems := t.problems(id, w.records, ofIngresses)
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

// problems are those of one cluster, of its Ingresses or of the others; the caller holds mu.
func (t *target) problems(id federation.ClusterID, records map[ref]*record, ofIngresses bool) (all []config.Problem) {
	for resource, b := range t.blocked {
		if resource != "" && (resource == ingresses) == ofIngresses {
			all = append(all, b.problem)
		}
	}
	for at, r := range records {
		if at.cluster != id || r.undone < contested || (at.key.Of() == ingressKind) != ofIngresses {
			continue
		}
		all = append(all, config.Problem{Code: codeContested, Object: fmt.Sprintf("%s of cluster %s", at.key.Title(), id), Field: "status", Message: fmt.Sprintf(
			"another controller overwrites what the hub writes into the status; the hub writes it at most every %s", r.pause)})
	}
	slices.SortFunc(all, config.Problem.Compare)
	return all[:min(len(all), mostContested)]
}
