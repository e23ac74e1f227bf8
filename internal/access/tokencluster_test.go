package access

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// TestU13ATokenWithoutAClusterIsReviewedByTheNamedOne, as those of istioctl, and by no other:
// who names a cluster is asked there.
func TestU13ATokenWithoutAClusterIsReviewedByTheNamedOne(t *testing.T) {
	t.Parallel()
	one := startCluster(t, "one")
	w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: one.uid}})
	defer w.attach(t, "c1", one.client)()
	token := Token(one.ServiceAccountToken(testbed.TokenOptions{Namespace: "shop", Account: "web", Audience: "istio-ca"}))
	w.o.TokenCluster = "c1"
	who, err := w.Identify(call{token: token}.context(t))
	if cluster, _ := who.Cluster(); err != nil || cluster != "c1" || who.Workload != workload("shop", "web") {
		t.Errorf("it proves %+v, %v", who, err)
	}
	if _, err := w.Identify(call{token: token, cluster: "c9"}.context(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("with another cluster: %v", err)
	}
	w.o.TokenCluster = "c9"
	if _, err := w.Identify(call{token: token}.context(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("of a cluster that is not attached: %v", err)
	}
}
