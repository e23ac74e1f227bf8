// Package listwatchtest has an API server for tests of what reads a cluster: it keeps
// Secrets and their history, and does wrong what a test wants. It works in a bubble of
// testing/synctest.
package listwatchtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/internal/kube/clients"
)

// Server is a cluster that has nothing but Secrets, and reviews tokens. It is an http.RoundTripper.
type Server struct {
	mu       sync.Mutex
	uid      string
	proofs   int // that it is the cluster of that UID
	version  int
	secrets  []*corev1.Secret // sorted
	history  []event
	kept     int           // watches begin at this version at the earliest
	changed  chan struct{} // closed by each change
	ended    chan struct{} // closed when the watches of now are to end
	wrong    func(*http.Request) (*http.Response, error)
	review   func(token string) authenticationv1.TokenReviewStatus // nil: the server reviews no tokens
	requests []string
}

type event struct {
	version int
	kind    string // ADDED, MODIFIED or DELETED
	secret  *corev1.Secret
}

// New is an empty cluster whose kube-system has the UID.
func New(uid string) *Server {
	return &Server{uid: uid, version: 100, changed: make(chan struct{}), ended: make(chan struct{})}
}

// Client speaks to the server.
func (s *Server) Client(t testing.TB) clients.Interface {
	t.Helper()
	client, err := clients.New(&rest.Config{
		Host: "http://cluster.test", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// change changes the server, and tells its watches.
func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Become makes the server that of another cluster, or of the same one again. Watches of
// before end.
func (s *Server) Become(uid string) {
	s.change(func() {
		s.uid, s.proofs = uid, 0
		s.endWatches()
	})
}

// Wrong answers requests before the server does; with neither answer nor error the
// server answers. Nil: the server answers all.
func (s *Server) Wrong(answer func(*http.Request) (*http.Response, error)) {
	s.change(func() { s.wrong = answer })
}

// Review answers TokenReviews. The function may be called by several goroutines at once.
func (s *Server) Review(answer func(token string) authenticationv1.TokenReviewStatus) {
	s.change(func() { s.review = answer })
}

// EndWatches ends the watches of now.
func (s *Server) EndWatches() { s.change(s.endWatches) }

func (s *Server) endWatches() {
	close(s.ended)
	s.ended = make(chan struct{})
}

// Compact forgets the history, so that watches can begin now at the earliest.
func (s *Server) Compact() {
	s.change(func() { s.version++; s.kept, s.history = s.version, nil })
}

// Restore is the server with a backup: what it has is older, and so is its version.
func (s *Server) Restore(version int, secrets ...*corev1.Secret) {
	s.change(func() {
		s.version, s.kept = version, version
		s.history, s.secrets = nil, nil
		for _, secret := range secrets {
			s.put(secret)
		}
	})
}

// Put adds a Secret or changes it.
func (s *Server) Put(secret *corev1.Secret) { s.change(func() { s.put(secret) }) }

// Delete deletes a Secret.
func (s *Server) Delete(namespace, name string) {
	s.change(func() {
		i := s.find(namespace, name)
		if i < 0 {
			return
		}
		s.note("DELETED", s.secrets[i].DeepCopy())
		s.secrets = slices.Delete(s.secrets, i, i+1)
	})
}

func (s *Server) put(secret *corev1.Secret) {
	secret = secret.DeepCopy()
	secret.APIVersion, secret.Kind = "v1", "Secret"
	if i := s.find(secret.Namespace, secret.Name); i >= 0 {
		s.secrets[i] = secret
		s.note("MODIFIED", secret)
		return
	}
	s.secrets = append(s.secrets, secret)
	slices.SortFunc(s.secrets, func(a, b *corev1.Secret) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	s.note("ADDED", secret)
}

func (s *Server) note(kind string, secret *corev1.Secret) {
	s.version++
	secret.ResourceVersion = strconv.Itoa(s.version)
	s.history = append(s.history, event{s.version, kind, secret})
}

func (s *Server) find(namespace, name string) int {
	return slices.IndexFunc(s.secrets, func(o *corev1.Secret) bool { return o.Namespace == namespace && o.Name == name })
}

// Requests are what was asked about Secrets: "list" with the continue token and "watch"
// with the version that it begins at.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Proofs are how often the server was asked who it is, since it became that cluster.
func (s *Server) Proofs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proofs
}

// RoundTrip is part of http.RoundTripper.
func (s *Server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.record(request)
	wrong, review := s.wrong, s.review
	s.mu.Unlock()
	if wrong != nil {
		if answer, err := wrong(request); answer != nil || err != nil {
			return answer, err
		}
	}
	if review != nil && strings.HasSuffix(request.URL.Path, "/tokenreviews") {
		var asked authenticationv1.TokenReview
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
			return nil, fmt.Errorf("reading a TokenReview: %w", err)
		}
		asked.Status = review(asked.Spec.Token)
		return JSON(http.StatusCreated, asked), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case request.URL.Path == "/version":
		return JSON(http.StatusOK, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}), nil
	case request.URL.Path == "/api/v1/namespaces":
		s.proofs++
		system := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(s.uid)}}
		return JSON(http.StatusOK, corev1.NamespaceList{
			ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)},
			Items:    []corev1.Namespace{system},
		}), nil
	case len(segments) == 6 && segments[4] == "secrets":
		if i := s.find(segments[3], segments[5]); i >= 0 {
			return JSON(http.StatusOK, s.secrets[i]), nil
		}
		return Status(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	case len(segments) == 5 && segments[4] == "secrets" && request.URL.Query().Get("watch") != "":
		return s.watch(request, segments[3]), nil
	case len(segments) == 5 && segments[4] == "secrets":
		return s.list(request, segments[3]), nil
	}
	return Status(http.StatusNotFound, metav1.StatusReasonNotFound), nil
}

func (s *Server) record(request *http.Request) {
	query := request.URL.Query()
	switch {
	case !strings.HasSuffix(request.URL.Path, "/secrets"):
	case query.Get("watch") != "":
		s.requests = append(s.requests, "watch "+query.Get("resourceVersion"))
	default:
		s.requests = append(s.requests, strings.TrimSpace("list "+query.Get("continue")))
	}
}
