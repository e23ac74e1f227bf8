package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// account is what a cluster reports about a token.
type account struct {
	namespace, name, pod string
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

// ask asks the cluster for which account it made the token (S2). The cluster
// must be the one that was attached: another one behind its address could say
// what it likes.
func (a *attached) ask(ctx context.Context, uid string, token Token, audiences []string) (account, error) {
	if err := a.proves(ctx, uid); err != nil {
		return account{}, err
	}
	answer, err := a.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: string(token), Audiences: audiences},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return account{}, errors.New("the hub may not review tokens there; grant it create on tokenreviews")
	case err != nil:
		return account{}, unanswered{"its API server does not answer"} // the error may quote what was sent
	}
	return accountOf(answer.Status, audiences)
}

// proves tells why the cluster does not prove that it is the known one. Callers that are
// not authenticated yet read the reason: it has no addresses.
func (a *attached) proves(ctx context.Context, uid string) error {
	if uid == "" {
		return errors.New("it is not known yet which one it is")
	}
	err := a.cluster.Verify(ctx, a.client, uid)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(listwatch.ForeignError)):
		return errors.New("another cluster answers at its address")
	case errors.As(err, new(listwatch.UnprovenError)) || listwatch.Definite(err) || !errors.As(err, new(listwatch.AccessError)):
		return errors.New("its API server does not tell which cluster it is of")
	}
	return unanswered{"its API server does not tell which cluster it is of"}
}

func accountOf(status authenticationv1.TokenReviewStatus, audiences []string) (account, error) {
	user, ok := strings.CutPrefix(status.User.Username, userPrefix)
	namespace, name, both := strings.Cut(user, ":")
	switch {
	case !status.Authenticated:
		return account{}, refusal{"the cluster does not accept the token"}
	case !shares(status.Audiences, audiences):
		return account{}, refusal{"the token is not for this hub: mount one with the audience " + quoted(audiences)}
	case !ok || !both || namespace == "" || name == "" || strings.Contains(name, ":"):
		return account{}, refusal{"the token is not that of a service account"}
	}
	a := account{namespace: namespace, name: name}
	switch pods := slices.Clone([]string(status.User.Extra[podName])); len(pods) {
	case 0:
	case 1:
		a.pod = pods[0]
	default:
		return account{}, refusal{fmt.Sprintf("the token is bound to %d pods", len(pods))}
	}
	return a, nil
}
