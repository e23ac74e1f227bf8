package listwatch

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/federation"
)

// ErrRelist means that a list or watch ended because everything is listed again.
var ErrRelist = errors.New("everything is listed again")

// UnprovenError means that the cluster did not prove that it is the known one.
type UnprovenError struct{ Why error }

func (e UnprovenError) Error() string {
	return "the cluster did not prove that it is the known one: " + e.Why.Error()
}
func (e UnprovenError) Unwrap() error { return e.Why }

// Interrupted reports whether following a resource was only interrupted: it goes on by
// itself once the cluster has proven itself, and the cluster's own status says why.
func Interrupted(err error) bool {
	var unproven UnprovenError
	return errors.Is(err, ErrRelist) || errors.As(err, &unproven)
}

// ForeignError means that another cluster answers at the address.
type ForeignError struct{ Want, Have string }

func (e ForeignError) Error() string {
	return fmt.Sprintf("another cluster answers at this address: its kube-system has the UID %s and not %s; nothing of it is used; correct the address or confirm the new cluster", federation.Quote(e.Have), federation.Quote(e.Want))
}

// UnsteadyError means that the server's version changes on every request (B-K19).
type UnsteadyError struct{ Versions string }

func (e UnsteadyError) Error() string {
	return fmt.Sprintf("the API server says another version each time it is asked (%s): nothing of it is used until it is steady or an operator confirms the cluster", e.Versions)
}

// Untrusted reports whether the trouble lasts until the known cluster answers, steadily,
// whatever else may go wrong meanwhile: the silence of another cluster proves nothing.
func Untrusted(err error) bool {
	var foreign ForeignError
	var unsteady UnsteadyError
	return errors.As(err, &foreign) || errors.As(err, &unsteady)
}

// AccessError is a request that the server refused or did not answer.
type AccessError struct {
	Verb, Resource string
	Err            error
}

func (e AccessError) Error() string { return e.Verb + " " + e.Resource + ": " + e.Err.Error() }
func (e AccessError) Unwrap() error { return e.Err }

// ownError is a text of the hub's own, which needs no explanation.
type ownError string

func (e ownError) Error() string { return string(e) }

// errEndsAtOnce and errRepeats are what servers do that no API server does.
const (
	errEndsAtOnce = ownError("the server ends the watch at once")
	errRepeats    = ownError("the server gave the same continue token twice: the list has no end; nothing of it is used")
)

// faultError means that the hub panicked over an object.
type faultError struct{ k Key }

func (e faultError) Error() string {
	return fmt.Sprintf("the hub cannot read %s, which is a fault of the hub; report it with the stack in the hub's log", e.k)
}

// needsList reports whether what a watch did not bring can only be found by a list.
func needsList(err error) bool {
	var fault faultError
	return Limited(err) || errors.As(err, &fault)
}

// Definite reports whether the server answered and refused: it will do so again
// until an operator changes rights, credentials or the server.
func Definite(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// Limited reports whether the server has more than it may.
func Limited(err error) bool {
	var limit federation.LimitError
	return errors.As(err, &limit)
}

// Endless reports whether a list has no end, or more than the cluster may have.
func Endless(err error) bool { return Limited(err) || errors.Is(err, errRepeats) }

// EndsAtOnce reports whether the server ended a watch as soon as it began.
func EndsAtOnce(err error) bool { return errors.Is(err, errEndsAtOnce) }

func overloaded(err error) bool { return apierrors.IsTooManyRequests(err) }

// expired reports whether the version to go on from is not kept any more.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTimeout(err) &&
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// Message says what is wrong and what to do.
func Message(err error, explain func(error) string) string {
	var access AccessError
	if !errors.As(err, &access) {
		return err.Error()
	}
	text := access.Err.Error()
	if own := ownError(""); !errors.As(access.Err, &own) && !Limited(err) {
		text = explain(access.Err)
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub may not %s %s in this cluster (403): grant it the verbs list and watch on %s", access.Verb,
			access.Resource, access.Resource)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the cluster does not accept the hub's credentials (%s %s): rotate them (%s)", access.Verb, access.Resource, text)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the API server does not offer %s, which the hub needs (%s)", access.Resource, text)
	}
	return fmt.Sprintf("%s %s: %s", access.Verb, access.Resource, text)
}
