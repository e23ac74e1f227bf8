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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// account is what a cluster says of a token.
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

// review asks the cluster for which account it made the token (S2). The cluster
// must be the one that was attached: another one behind its address could say
// what it likes.
func review(ctx context.Context, client kubernetes.Interface, uid string, token Token, audiences []string) (account, error) {
	if err := sameCluster(ctx, client, uid); err != nil {
		return account{}, err
	}
	answer, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
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

func sameCluster(ctx context.Context, client kubernetes.Interface, uid string) error {
	if uid == "" {
		return errors.New("it is not known yet which one it is")
	}
	// As a list: that is what an account that reads the cluster may do.
	found, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", metav1.NamespaceSystem).String(),
	})
	switch {
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err):
		return unanswered{"its API server does not tell which cluster it is of"}
	case err != nil || len(found.Items) != 1 || found.Items[0].Name != metav1.NamespaceSystem:
		return errors.New("its API server does not tell which cluster it is of")
	case string(found.Items[0].UID) != uid:
		return errors.New("another cluster answers at its address")
	}
	return nil
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
