package federation

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"isthmus.dev/isthmus/internal/smallmap"
)

// Codes of problems that several rooms report.
const (
	CodeWorkloadUnhealthy = "WORKLOAD_UNHEALTHY" // the agent of the workload does not report that it is healthy
	CodeHubFault          = "HUB_FAULT"          // the hub panicked over the object, or cannot build what it asks for
	CodeNotHonoured       = "NOT_HONOURED"       // a field of the object has no effect
	CodeMoreProblems      = "MORE_PROBLEMS"      // the object has more than are listed
)

// MostProblems bounds the problems that are reported of one object.
const MostProblems = 16

// ObjectProblems collects the problems of one object, at most MostProblems and a count
// of the rest.
type ObjectProblems struct {
	Object string // as in Problem
	Rest   string // the field of the count of the rest
	found  []Problem
	more   int
}

// Add adds a problem with the field.
func (o *ObjectProblems) Add(code, field, format string, args ...any) {
	if len(o.found) == MostProblems {
		o.more++
		return
	}
	o.found = append(o.found, Problem{Code: code, Object: o.Object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// All returns the problems.
func (o *ObjectProblems) All() []Problem {
	if o.more == 0 {
		return o.found
	}
	return append(o.found, Problem{
		Code: CodeMoreProblems, Object: o.Object, Field: o.Rest,
		Message: fmt.Sprintf("%d more problems of this object are not listed", o.more),
	})
}

// Quote shows a value from outside in a message: escaped, and cut to a readable length.
func Quote(value string) string {
	const most = 64
	if len(value) <= most {
		return fmt.Sprintf("%q", value)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return fmt.Sprintf("%q (cut)", value[:cut])
}

// ProblemSubject is a thing of a cluster as problems name it: a Problem.Object.
type ProblemSubject struct {
	Cluster ClusterID
	Object  string
}

func (p ProblemSubject) prefix() string { return clusterPrefix(p.Cluster) + p.Object + nul }

func problemSubjectOf(prefix string) ProblemSubject {
	cluster, object, _ := strings.Cut(prefix, nul)
	return ProblemSubject{Cluster: ClusterID(cluster), Object: strings.TrimSuffix(object, nul)}
}

// ReadProblems returns those of the Problems of a cluster that are about the object, noted.
func ReadProblems(r *Reader, of ProblemSubject) (found []Problem) {
	smallmap.Add(&r.deps.Problems, of)
	prefix, problems := of.prefix(), &r.snapshot.clusters.problems
	r.snapshot.clusters.about.WalkPrefix(prefix, func(k string, _ struct{}) bool {
		if p, is := problems.Get(k[len(prefix):]); is && p.Object == of.Object { // else the text of another one begins so
			found = append(found, p)
		}
		return false
	})
	return found
}
