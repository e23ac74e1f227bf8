package consul

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestR84IdentitiesAreBounded: an identity is stored, shown and compared everywhere. One that Consul cannot have is not taken, and
// what it lists is not read.
func TestR84IdentitiesAreBounded(t *testing.T) {
	server := func(id, dc string) string {
		return fmt.Sprintf(`{"Node":{"ID":%q,"Node":"n1","Address":"10.0.0.1","Datacenter":%q},"Service":{"ID":"consul","Service":"consul"}}`,
			id, dc)
	}
	crowd := make([]string, maxServers+1)
	for i := range crowd {
		crowd[i] = server(fmt.Sprint("n-", i), "dc1")
	}
	for name, test := range map[string]struct{ servers, says string }{
		"long ID":          {server(strings.Repeat("x", 1<<20), "dc1"), "no node ID"},
		"ID of two":        {server("a,b", "dc1"), "no node ID"},
		"ID with a space":  {server("a b", "dc1"), "no node ID"},
		"datacenter":       {server("n-1", "dc1/n-1"), "no node ID"},
		"long datacenter":  {server("n-1", strings.Repeat("x", 1<<20)), "no node ID"},
		"too many servers": {strings.Join(crowd, ","), "more than 100 servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{asked: map[string]int{}, index: 100}
			s.health = s.web("10.0.0.1")
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == healthPath+canaryService {
					_, _ = fmt.Fprintf(w, "[%s]", test.servers)
					return
				}
				s.ServeHTTP(w, q)
			}))
			t.Cleanup(front.Close)
			registry, err := New(Options{Cluster: "c1", Address: front.URL, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			v := heardOf(t, registry).Wait(t, "a refusal", func(v registrytest.View) bool {
				return v.Status.Phase != federation.Syncing && v.Status.Phase != ""
			})
			if !strings.Contains(v.Status.Message, test.says) || v.Edits > 0 || len(v.Status.Message) > 1000 {
				t.Errorf("after %d edits it is %s: %.200s", v.Edits, v.Status.Phase, v.Status.Message)
			}
		})
	}
}
