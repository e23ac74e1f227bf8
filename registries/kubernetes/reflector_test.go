package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/registries/registrytest"
)

// playing answers requests for services by a script and all else as paced does.
type playing struct {
	*paced
	services func(query url.Values) (status int, body string)

	mu    sync.Mutex
	asked []string // the queries about services
}

func (p *playing) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/services") {
		return p.paced.RoundTrip(request)
	}
	query := request.URL.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := "list"
	if query.Get("watch") != "" {
		asked = "watch " + query.Get("resourceVersion")
	}
	p.asked = append(p.asked, strings.TrimSpace(asked+" "+query.Get("continue")))
	status, body := p.services(query)
	if asked == "list" || status != http.StatusOK {
		return answer(status, io.NopCloser(strings.NewReader(body))), nil
	}
	// A watch says what it has to say and lasts for two minutes more.
	ctx, stop := context.WithTimeout(request.Context(), 2*time.Minute)
	return answer(status, talk{io.MultiReader(strings.NewReader(body), endlessBody{ctx.Done()}), stop}), nil
}

// talk is the body of a watch; its Close ends a Read, as that of a connection does.
type talk struct {
	io.Reader
	stop func()
}

func (t talk) Close() error { t.stop(); return nil }

type endlessBody struct{ ended <-chan struct{} }

func (s endlessBody) Read([]byte) (int, error) { <-s.ended; return 0, io.EOF }

func (p *playing) queries() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, ", ")
}

func startPlaying(t *testing.T, services func(url.Values) (int, string)) (*playing, *registrytest.Recorder) {
	t.Helper()
	script := &playing{paced: &paced{version: 10}, services: services}
	client, err := clients.New(&rest.Config{Host: "http://cluster.test", Transport: script, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, recorder := startPaced(t, script.paced, func(o *Options) { o.Client, o.Reconcile = client, -1 })
	return script, recorder
}

func serviceItem(name string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"suite","resourceVersion":"%d"},"spec":{"ports":[{"port":80}]}}`, name, version)
}

func listOf(version int, next string, items ...string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, version, next, strings.Join(items, ","))
}

func watchEvent(kind, object string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
}

const gone410 = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`

// TestBookmarkIsWhereTheNextWatchBegins: without it a quiet kind would go on at
// a version that the server has long forgotten.
func TestBookmarkIsWhereTheNextWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, recorder := startPlaying(t, func(query url.Values) (int, string) {
			if query.Get("watch") == "" {
				return http.StatusOK, listOf(10, "", serviceItem("a", 5))
			}
			if query.Get("allowWatchBookmarks") == "" {
				t.Error("no bookmarks are asked for")
			}
			return http.StatusOK, watchEvent("BOOKMARK", `{"apiVersion":"v1","kind":"Service","metadata":{"resourceVersion":"777"}}`)
		})
		recorder.WaitPhase(t, federation.Ready)
		elapse(3 * time.Minute)
		if got, want := script.queries(), "list, watch 10, watch 777"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		if v := recorder.View(); len(v.Services) != 1 || v.Edits != 1 {
			t.Errorf("a bookmark made %d edits and left %d services", v.Edits-1, len(v.Services))
		}
	})
}

// TestF41ExpiredInsideAWatchListsAgain: 200, events, and then an ERROR with 410.
func TestF41ExpiredInsideAWatchListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		script, recorder := startPlaying(t, func(query url.Values) (int, string) {
			switch {
			case query.Get("watch") == "" && lists == 0:
				lists++
				return http.StatusOK, listOf(10, "", serviceItem("a", 5), serviceItem("b", 6))
			case query.Get("watch") == "":
				return http.StatusOK, listOf(50, "", serviceItem("a", 5), serviceItem("c", 40))
			case query.Get("resourceVersion") == "10":
				return http.StatusOK, watchEvent("MODIFIED", serviceItem("b", 12)) + watchEvent("ERROR", gone410)
			}
			return http.StatusOK, ""
		})
		recorder.Wait(t, "what the second list says", func(v registrytest.View) bool {
			return v.Services[serviceKey("c")] != nil && v.Services[serviceKey("b")] == nil
		})
		synctest.Wait()
		recorder.WaitPhase(t, federation.Ready)
		if got, want := script.queries(), "list, watch 10, list, watch 50"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		edits := recorder.Edits()
		if last := edits[len(edits)-1]; !last.Services.Full || len(last.Services.Set) != 2 {
			t.Errorf("the new list came as %+v, want a full edit", last.Services)
		}
		for _, s := range recorder.Statuses() {
			if s.Phase == federation.Stale {
				t.Errorf("an expired version is not trouble, but the status was %+v", s)
			}
		}
	})
}

// TestListWhoseVersionExpiresBetweenPagesIsReadWhole: nothing of the pages of
// another version is mixed in.
func TestListWhoseVersionExpiresBetweenPagesIsReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, recorder := startPlaying(t, func(query url.Values) (int, string) {
			switch {
			case query.Get("watch") != "":
				return http.StatusOK, ""
			case query.Get("continue") == "second":
				return http.StatusOK, listOf(10, "third", serviceItem("b", 2))
			case query.Get("continue") == "third":
				return http.StatusGone, gone410
			case query.Get("limit") != "":
				return http.StatusOK, listOf(10, "second", serviceItem("a", 1))
			}
			return http.StatusOK, listOf(90, "", serviceItem("b", 2), serviceItem("c", 80))
		})
		v := recorder.WaitPhase(t, federation.Ready)
		if len(v.Services) != 2 || v.Services[serviceKey("a")] != nil || v.Services[serviceKey("c")] == nil || v.Edits != 1 {
			t.Errorf("%d edits, services %v", v.Edits, v.Services)
		}
		if got, want := script.queries(), "list, list second, list third, list, watch 90"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	})
}

// TestF05PanicOfAReflectorIsOneOfRun: the supervisor of the registry decides what
// happens; the process lives on.
func TestF05PanicOfAReflectorIsOneOfRun(t *testing.T) {
	script := &playing{paced: &paced{version: 10}, services: func(url.Values) (int, string) { panic("a bug") }}
	client, err := clients.New(&rest.Config{Host: "http://cluster.test", Transport: script, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p, ok := recover().(*panicked); !ok || !strings.Contains(p.Error(), "a bug") || !strings.Contains(p.Error(), "reflector_test.go") {
			t.Errorf("Run ended with %v, want the panic and its stack", p)
		}
	}()
	_ = New(Options{Cluster: "c1", Client: client}).Run(t.Context(), &registrytest.Recorder{})
	t.Error("Run returned")
}
