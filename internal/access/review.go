package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Account is for whom a cluster made a token.
type Account struct {
	Namespace, Name string
	Pod             string    // to which the token is bound; empty: to none
	Ends            time.Time // of the token
	// datacenter: a Consul datacenter made the token.
	datacenter bool
}

// maker asks the cluster that makes tokens about one of them.
type maker interface {
	// read refuses what cannot be good, without asking. The rest proves nothing yet.
	read(token Token, audiences []string, now time.Time) error
	// subject is what a refusal of the token is counted for, beside its source; empty: it claims nothing.
	subject(token Token) string
	// review asks for whom the cluster made the token (S2). The cluster must be the one
	// that was attached: another one behind its address could say what it likes.
	review(ctx context.Context, uid string, token Token, audiences []string) (Account, error)
}

// kubernetesTokens are reviewed by an API server.
type kubernetesTokens struct {
	client  clients.Interface
	cluster *listwatch.Cluster
}

func (kubernetesTokens) read(token Token, audiences []string, now time.Time) error {
	c, err := token.read()
	if err != nil {
		return err
	}
	return c.check(audiences, now)
}

// refusal is a definite no: it is remembered for a while.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

// unanswered is the error of a server that did not answer, or could not.
type unanswered struct{ why string }

func (u unanswered) Error() string { return u.why }

const (
	userPrefix = "system:serviceaccount:"
	podName    = "authentication.kubernetes.io/pod-name"
)

func (kubernetesTokens) subject(token Token) string {
	c, err := token.read()
	if err != nil {
		return ""
	}
	return c.Subject + "\x00" + c.Kubernetes.Pod.UID
}

// review has the API server review the token.
func (k kubernetesTokens) review(ctx context.Context, uid string, token Token, audiences []string) (Account, error) {
	if err := k.proves(ctx, uid); err != nil {
		return Account{}, err
	}
	answer, err := k.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: string(token), Audiences: audiences},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return Account{}, errors.New("the hub may not review tokens there; grant it create on tokenreviews")
	case err != nil:
		return Account{}, unanswered{"its API server does not answer"} // the error may quote what was sent
	}
	found, err := accountOf(answer.Status, audiences)
	if c, unread := token.read(); unread == nil {
		found.Ends = c.ends()
	}
	return found, err
}

// proves tells why the cluster does not prove that it is the known one. Callers that are
// not authenticated yet read the reason: it has no addresses.
func (k kubernetesTokens) proves(ctx context.Context, uid string) error {
	if uid == "" {
		return errors.New("the cluster's identity is not known yet")
	}
	err := k.cluster.Verify(ctx, k.client, uid)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(listwatch.ForeignError)):
		return errors.New("another cluster answers at its address")
	case apierrors.IsUnauthorized(err):
		return errors.New("its API server does not accept the hub's credentials: rotate them")
	case errors.As(err, new(listwatch.UnprovenError)) || listwatch.Definite(err) || !errors.As(err, new(listwatch.AccessError)):
		return errors.New("its API server does not show the UID of namespace kube-system")
	}
	return unanswered{"its API server does not show the UID of namespace kube-system"}
}

func accountOf(status authenticationv1.TokenReviewStatus, audiences []string) (Account, error) {
	user, ok := strings.CutPrefix(status.User.Username, userPrefix)
	namespace, name, both := strings.Cut(user, ":")
	switch {
	case !status.Authenticated:
		return Account{}, refusal{"the cluster does not accept the token"}
	case !shares(status.Audiences, audiences):
		return Account{}, refusal{"the token is not for this hub: mount one with the audience " + quoted(audiences)}
	case !ok || !both || namespace == "" || name == "" || strings.Contains(name, ":"):
		return Account{}, refusal{"the token is not that of a service account"}
	}
	a := Account{Namespace: namespace, Name: name}
	switch pods := slices.Clone([]string(status.User.Extra[podName])); len(pods) {
	case 0:
	case 1:
		a.Pod = pods[0]
	default:
		return Account{}, refusal{fmt.Sprintf("the token is bound to %d pods", len(pods))}
	}
	return a, nil
}
