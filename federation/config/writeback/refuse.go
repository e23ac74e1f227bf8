package writeback

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/text"
)

// The codes of problems, which are those of the source that gave the objects.
const (
	codeForbidden = "STATUS_FORBIDDEN" // the account may not write the status of a kind
	codeRefused   = "STATUS_REFUSED"   // the API server does not accept the status of an object
	codeContested = "STATUS_CONTESTED" // somebody else writes the status of an object, too
)

// block keeps a cluster, a resource or an object from being written for some time.
type block struct {
	until   time.Time
	tries   retry.Backoff
	problem config.Problem // Code is empty for a cluster: its own status says why
}

func (o Options) newBlock() *block {
	return &block{tries: retry.Backoff{First: o.Pause, Longest: mostPause}}
}

func (b *block) again() { b.until = time.Now().Add(b.tries.Next()) }

// isForbidden reports whether the account lacks the right to write. Webhooks and policies of
// the cluster refuse single objects with the same status code.
func isForbidden(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource")
}

// forbid puts off all writes of a resource, and notes why; the caller holds mu.
func (j job) forbid(w *Writer) {
	resource, blocked := j.r.Resource, w.clusters[j.at.cluster].blocked
	w.o.count(j.at.cluster, "forbidden")
	b := blocked[named(resource)]
	if b == nil {
		b = w.o.newBlock()
		blocked[named(resource)] = b
	}
	b.again()
	w.o.warn(b, config.Problem{
		Code: codeForbidden, Object: fmt.Sprintf("%s of cluster %s", resource.GroupResource(), j.at.cluster), Field: "status",
		Message: fmt.Sprintf("the hub may not write the status: grant its account the verb patch on %s/status of the API group %s, or set status to false",
			resource.Resource, resource.Group),
	})
}

const mostMessage = 1024 // bytes

// refuse puts off the writes of one object, and notes why; the caller holds mu. Others of its
// kind may be accepted.
func (j job) refuse(w *Writer, err error) {
	w.o.count(j.at.cluster, "refused")
	r := w.records[j.at]
	if r == nil {
		return
	}
	if r.refused == nil {
		r.refused = w.o.newBlock()
	}
	r.refused.again()
	r.notBefore = r.refused.until
	w.troubled[j.at] = struct{}{}
	w.o.warn(r.refused, config.Problem{
		Code: codeRefused, Object: fmt.Sprintf("%s of cluster %s", j.at.key.Title(), j.at.cluster), Field: "status",
		Message: text.Cut("the API server does not accept the status: "+words(err), mostMessage),
	})
}

// words are those of the server, escaped.
func words(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Message != "" {
		return strconv.Quote(answer.Status().Message)
	}
	return listwatch.Message(err, kube.Explain)
}

// warn notes a problem, and logs another one than before.
func (o Options) warn(b *block, problem config.Problem) {
	if b.problem != problem {
		b.problem = problem
		o.Logger.Warn("status of objects is not written", slog.String("object", problem.Object), slog.String("code", problem.Code),
			slog.String("problem", problem.Message))
	}
}
