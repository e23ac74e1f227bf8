package listwatchtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is one event of a watch.
func Event(kind string, object any) string {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err) // cannot be: these are objects of an API
	}
	return string(text) + "\n"
}

// Answer is one with this body.
func Answer(status int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// JSON is an answer with this value.
func JSON(status int, value any) *http.Response {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // cannot be: these are objects of an API
	}
	return Answer(status, io.NopCloser(strings.NewReader(string(text))))
}

// Failure is what API servers answer instead of objects.
func Failure(status int, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(status), Reason: reason, Message: fmt.Sprintf("refused with %d", status),
	}
}

// Status is an answer with a Failure.
func Status(status int, reason metav1.StatusReason) *http.Response {
	return JSON(status, Failure(status, reason))
}
