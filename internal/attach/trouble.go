package attach

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// matter is what is read of a cluster, for messages.
type matter struct {
	noun     string // "Secrets that name clusters"
	resource string // of the right to list and watch them
	manifest string // that grants it
}

// trouble is what keeps one client from reading one matter.
type trouble struct {
	*clusterReader
	of         matter
	complained bool // since all was well
}

// take complains about the error, and reports whether what was told before is over: all
// that is named has to be said again.
func (t *trouble) take(err error) (over bool) {
	if err == nil {
		over, t.complained = t.complained, false
		return over
	}
	if why, refused := t.reason(err); why != "" {
		t.complained = true
		t.publishTrouble(why, refused)
	}
	return false
}

// reason is the text of the error for users, empty for none, and whether the matter cannot
// be read at all: the account may not, or there is no such resource.
func (t *trouble) reason(err error) (why string, refused bool) {
	var other listwatch.ForeignError
	d := kube.Diagnose(err)
	switch {
	case errors.Is(err, listwatch.ErrRelist), listwatch.EndsAtOnce(err):
		return "", false // what was read stays, and is read again
	case errors.As(err, &other):
		return fmt.Sprintf("another cluster answers; its %s are not read", t.of.noun), false
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the cluster does not serve %s: install their CustomResourceDefinition there", t.of.noun), true
	case listwatch.Endless(err):
		return fmt.Sprintf("the list of %s has no end, or is larger than 128 MiB; nothing of it is used", t.of.noun), false
	case d.Trouble == kube.TroubleForbidden && !listwatch.Interrupted(err):
		return fmt.Sprintf("the hub may not read the %s: grant it the verbs list and watch on %s in the namespace %s, as %s does",
			t.of.noun, t.of.resource, t.o.Namespace, t.of.manifest), true
	}
	return fmt.Sprintf("the %s cannot be read: %s", t.of.noun, d.Message), d.Trouble == kube.TroubleForbidden && !listwatch.Interrupted(err)
}
