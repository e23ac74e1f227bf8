package mesh

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	security "istio.io/api/security/v1beta1"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/metrics"
)

func TestR35TheLogAndAMetricTellOfPoliciesThatAreNotEnforced(t *testing.T) {
	a, counts := federation.NewAggregate(nil), metrics.New()
	if n := countUnenforced(a.Latest(), counts.Config); n != 0 {
		t.Errorf("an empty mesh has %d", n)
	}
	o := &federation.Object{
		Key:  federation.ObjectKey{Group: "security.istio.io", Kind: "AuthorizationPolicy", Namespace: "shop", Name: "deny"},
		Spec: &security.AuthorizationPolicy{TargetRefs: []*selection.PolicyTargetReference{{Kind: "Gateway", Name: "edge"}}}, Digest: "1",
	}
	a.Open(federation.ShardKey{Provider: federation.Operator}).Update(federation.Edit{
		Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}},
	})
	var log bytes.Buffer
	warnUnenforced(countUnenforced(a.Latest(), counts.Config), slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "objects=1") {
		t.Errorf("the log says %q", log.String())
	}
	answer := httptest.NewRecorder()
	counts.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`isthmus_config_policies_not_enforced{kind="AuthorizationPolicy"} 1`,
		`isthmus_config_policies_not_enforced{kind="RequestAuthentication"} 0`,
	} {
		if !strings.Contains(answer.Body.String(), line) {
			t.Errorf("metrics lack %s", line)
		}
	}
}
