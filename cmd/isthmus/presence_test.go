package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// waited is the answer to an apply that waits.
type waited struct {
	Apply struct {
		Rollout  struct{ Reached *bool }
		Findings []struct{ Code, Message string }
	}
}

// applyAndWait applies a ServiceEntry, and waits for proxies.
func (h *hubUnderTest) applyAndWait(t *testing.T, name string) (w waited) {
	t.Helper()
	manifest := strings.NewReplacer("NAME",
		name).Replace(`{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: NAME, namespace: shop}, ` +
		`spec: {hosts: [NAME.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}}`)
	a := h.askFrom(t,
		fmt.Sprintf(`mutation{apply(input:{manifests:[%q],waitFor:{state:ACKED,timeout:"5s"}}){rollout{reached} findings{code message}}}`,
			manifest), "")
	if err := json.Unmarshal(a.Data, &w); err != nil || len(a.Errors) > 0 {
		t.Fatal(err, a.Errors)
	}
	return w
}

// TestR73AHubWithoutProxiesDoesNotAnswerForOthers: a hub that is alone knows that all
// proxies have a change. One beside another does not, and says how many it did not
// count, until the other has gone.
func TestR73AHubWithoutProxiesDoesNotAnswerForOthers(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	key := filepath.Join(shortDir(t), "seal.key")
	start := func() *program {
		return startProgramIn(t, shortDir(t), "--etcd-endpoints", store.URL, "--seal-key", key)
	}
	first := start().at()
	turn := 0
	becomes := func(what string, so func(waited) bool) {
		t.Helper()
		first.await(t, what, func() error {
			turn++
			if w := first.applyAndWait(t, fmt.Sprint("entry-", turn)); !so(w) {
				return fmt.Errorf("the answer is %+v", w)
			}
			return nil
		})
	}
	alone := func(w waited) bool { return w.Apply.Rollout.Reached != nil && *w.Apply.Rollout.Reached }
	becomes("the only hub to answer for all proxies", alone)
	second := start()
	second.at()
	becomes("another hub not to be counted", func(w waited) bool {
		last := len(w.Apply.Findings) - 1
		return w.Apply.Rollout.Reached == nil && last >= 0 && w.Apply.Findings[last].Code == "OTHER_HUBS_NOT_COUNTED" &&
			strings.HasPrefix(w.Apply.Findings[last].Message, "1 other hub ")
	})
	second.signal(t)
	becomes("the hub that is alone again to answer for all proxies", alone)
}
