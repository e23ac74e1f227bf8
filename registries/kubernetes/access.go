package kubernetes

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accessError is a request that the server refused or did not answer.
type accessError struct {
	verb, resource string
	err            error
}

func (e accessError) Error() string { return e.verb + " " + e.resource + ": " + e.err.Error() }
func (e accessError) Unwrap() error { return e.err }

// ownError is a text of the hub's own, which needs no explanation.
type ownError string

func (e ownError) Error() string { return string(e) }

// definite tells whether the server answered and refused: it will do so again
// until somebody changes rights, credentials or the server.
func definite(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func overloaded(err error) bool { return apierrors.IsTooManyRequests(err) }

// expired tells whether the version to go on from is not kept any more.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// message says what is wrong and what to do.
func message(err error, explain func(error) string) string {
	var access accessError
	if !errors.As(err, &access) {
		return err.Error()
	}
	text := access.err.Error()
	if own := ownError(""); !errors.As(access.err, &own) && !limited(err) {
		text = explain(access.err)
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub may not %s %s in this cluster: grant it the verbs list and watch on %s (%s)", access.verb, access.resource, access.resource, text)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster does not accept the hub's credentials (%s %s): rotate them (%s)", access.verb, access.resource, text)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the API server does not offer %s, which the hub needs (%s)", access.resource, text)
	}
	return fmt.Sprintf("%s %s: %s", access.verb, access.resource, text)
}
