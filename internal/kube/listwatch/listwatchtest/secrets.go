package listwatchtest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selected tells which Secrets the request is about.
func selected(request *http.Request, namespace string) func(*corev1.Secret) bool {
	byField, err := fields.ParseSelector(request.URL.Query().Get("fieldSelector"))
	byLabel, wrong := labels.Parse(request.URL.Query().Get("labelSelector"))
	return func(o *corev1.Secret) bool {
		return err == nil && wrong == nil && o.Namespace == namespace &&
			byField.Matches(fields.Set{"metadata.name": o.Name}) && byLabel.Matches(labels.Set(o.Labels))
	}
}

func (s *Server) list(request *http.Request, namespace string) *http.Response {
	query := request.URL.Query()
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	answer := corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	matches := selected(request, namespace)
	for i := from; i < len(s.secrets); i++ {
		if limit > 0 && len(answer.Items) == limit {
			answer.Continue = strconv.Itoa(i)
			break
		}
		if matches(s.secrets[i]) {
			answer.Items = append(answer.Items, *s.secrets[i])
		}
	}
	return JSON(http.StatusOK, answer)
}

func (s *Server) watch(request *http.Request, namespace string) *http.Response {
	from, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	if from < s.kept {
		return Status(http.StatusGone, metav1.StatusReasonExpired)
	}
	body, to := io.Pipe()
	go s.send(request, to, from, selected(request, namespace), s.ended)
	return Answer(http.StatusOK, body)
}

// send writes what happens after a version, until the watch ends.
func (s *Server) send(request *http.Request, to *io.PipeWriter, after int, matches func(*corev1.Secret) bool, ended <-chan struct{}) {
	defer func() { _ = to.Close() }()
	seconds, _ := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	over := time.NewTimer(time.Duration(seconds) * time.Second)
	defer over.Stop()
	for {
		s.mu.Lock()
		history, changed := slices.Clone(s.history), s.changed
		s.mu.Unlock()
		for _, e := range history {
			if e.version <= after {
				continue
			}
			select {
			case <-ended:
				return
			default:
			}
			after = e.version
			if !matches(e.secret) {
				continue
			}
			if _, err := io.WriteString(to, Event(e.kind, e.secret)); err != nil {
				return
			}
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-over.C:
			return
		case <-request.Context().Done():
			return
		}
	}
}
