package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"isthmus.dev/isthmus/federation"
)

// unsteadyError says that the server is another one each time it is asked (B-K19).
type unsteadyError struct{ versions string }

func (e unsteadyError) Error() string {
	return fmt.Sprintf("the API server says another version each time it is asked (%s): nothing of it is used until it is steady or an operator confirms the cluster", e.versions)
}

// steadiness is what the server said of its version in the latest rounds.
type steadiness struct {
	rounds [12]string // a ring; empty: nothing was said
	next   int
}

// mostVersions is what servers show that are upgraded one after the other.
const mostVersions = 2

// hear takes the version of a round and judges the latest ones.
func (s *steadiness) hear(version string) error {
	s.rounds[s.next%len(s.rounds)] = version
	s.next++
	var distinct []string
	for _, v := range s.rounds {
		if v != "" && !slices.Contains(distinct, federation.Quote(v)) {
			distinct = append(distinct, federation.Quote(v))
		}
	}
	if len(distinct) <= mostVersions {
		return nil
	}
	slices.Sort(distinct)
	return unsteadyError{strings.Join(distinct, ", ")}
}

// version is what the server says, or empty: not every server tells everyone. It is an
// error if the server does not answer in time: such a server proves nothing.
func (g *gate) version(ctx context.Context) (string, error) {
	v, err := discovery.ToServerVersionInterfaceWithContext(g.client.Discovery()).ServerVersionWithContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", accessError{verb: "get", resource: "/version", err: err}
	case err != nil:
		return "", nil
	}
	return v.GitVersion + " " + v.Major + "." + v.Minor, nil
}

// lasting tells whether the trouble holds until the known cluster answers, steadily,
// whatever else may go wrong meanwhile: the silence of another cluster proves nothing.
func lasting(err error) bool {
	var foreign foreignError
	var unsteady unsteadyError
	return errors.As(err, &foreign) || errors.As(err, &unsteady)
}

// strange tells whether what answers is not, or not any more, what was followed:
// nothing of it is believed, and an operator must know.
func (l *link) strange(err error) bool {
	return lasting(err) || l.synced && apierrors.IsNotFound(err)
}

// frozen tells whether nothing that comes is passed on.
func (l *link) frozen() bool { return l.strange(l.worst()) }
