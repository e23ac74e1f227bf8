package serviceimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// TestR94AnInterruptedWriteIsNoFailure: a write that ends with the hub, or with the proof of the
// cluster, is neither counted nor logged.
func TestR94AnInterruptedWriteIsNoFailure(t *testing.T) {
	at := schema.GroupResource{Resource: "serviceimports"}
	for err, want := range map[error]string{
		nil: "",
		listwatch.UnprovenError{Why: context.Canceled}:    interrupted,
		listwatch.UnprovenError{Why: io.ErrUnexpectedEOF}: interrupted,
		fmt.Errorf("creating: %w", context.Canceled):      interrupted,
		fmt.Errorf("creating: %w", listwatch.ErrRelist):   interrupted,
		context.DeadlineExceeded:                          "unreachable",
		io.ErrUnexpectedEOF:                               "unreachable",
		apierrors.NewForbidden(at, "web", errors.New("")): "forbidden",
		apierrors.NewNotFound(at, "web"):                  conflict,
		apierrors.NewBadRequest("no"):                     "refused",
	} {
		if got := failure(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
