package access

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
)

// cluster is a real API server, and a client with the rights of the manifests.
type cluster struct {
	*testbed.Kube
	t      *testing.T
	client *kube.Client
	uid    string
}

func startCluster(t *testing.T, name string) cluster {
	t.Helper()
	c := cluster{t: t, Kube: testbed.StartKube(t, testbed.KubeOptions{Name: name})}
	for _, file := range []string{"reader.yaml", "tokens.yaml"} {
		manifest, err := os.ReadFile("../../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(string(manifest))
	}
	c.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	reader := c.Admin
	reader.Cert, reader.Key = nil, nil
	reader.Token = c.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	parsed, err := kube.Parse(reader.Kubeconfig(), kube.ParseOptions{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	c.client, err = kube.Connect(parsed, kube.ConnectOptions{Allow: func(netip.AddrPort) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.uid = c.namespace("kube-system")
	return c
}

func (c cluster) namespace(name string) (uid string) { return c.uidOf("/api/v1/namespaces/" + name) }

func (c cluster) uidOf(path string) string {
	var o struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	answer := c.Do("GET", path, nil)
	if answer.Err != nil || answer.Status != 200 {
		panic(fmt.Sprint(path, " ", answer.Status, answer.Err))
	}
	answer.Decode(c.t, &o)
	return o.Metadata.UID
}

// TestU52StrangersLearnNoReasons: who shows a token of a cluster that is not in order is not told why, since the reason may have
// files and addresses of the hub.
func TestU52StrangersLearnNoReasons(t *testing.T) {
	const reason = "/etc/isthmus/c1: dial tcp 192.0.2.9:6443: connection refused"
	w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: "1", Frozen: reason}})
	_, err := w.Identify(call{token: forged("isthmus", time.Now().Add(time.Hour)), cluster: "c1"}.context(t))
	if said := status.Convert(err); said.Code() != codes.Unavailable || said.Message() !=
		"the cluster c1 is frozen: this hub accepts its tokens again when it is in order" {
		t.Errorf("the caller is told %v", err)
	}
}

// TestS02TokensAreReviewedInTheirOwnCluster shows tokens to two real API servers.
func TestS02TokensAreReviewedInTheirOwnCluster(t *testing.T) {
	t.Parallel()
	one, two := startCluster(t, "one"), startCluster(t, "two")
	w := newFixture(map[federation.ClusterID]AttachState{
		"c1": {Attached: true, UID: one.uid}, "c2": {Attached: true, UID: two.uid}, "other": {Attached: true, UID: "another"},
		"frozen": {Attached: true, UID: one.uid, Frozen: "another cluster answers at this address"}, "linkless": {Attached: true, UID: one.uid},
	})
	for id, c := range map[federation.ClusterID]cluster{"c1": one, "c2": two, "other": one, "frozen": one} {
		defer w.attach(t, id, c.client)()
	}
	one.Apply(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop"},"spec":{"serviceAccountName":"web","containers":[{"name":"a","image":"a"}]}}`)
	token := func(c cluster, o testbed.TokenOptions) Token {
		o.Namespace, o.Account = "shop", "web"
		return Token(c.ServiceAccountToken(o))
	}
	good := token(one, testbed.TokenOptions{Audience: "isthmus"})
	bound := token(one, testbed.TokenOptions{Audience: "istio-ca", Pod: "web-1", PodUID: one.uidOf("/api/v1/namespaces/shop/pods/web-1")})
	gone := token(one, testbed.TokenOptions{Audience: "isthmus", Pod: "web-1", PodUID: one.uidOf("/api/v1/namespaces/shop/pods/web-1")})
	for name, c := range map[string]struct {
		call
		want string // of the error; empty: it is proven
		code codes.Code
	}{
		"good":               {call{token: good, cluster: "c1"}, "", codes.OK},
		"bound to a pod":     {call{token: bound, cluster: "c1"}, "", codes.OK},
		"of another cluster": {call{token: good, cluster: "c2"}, "does not accept", codes.Unauthenticated},
		"of an unknown cluster": {
			call{token: good, cluster: "c9"},
			`no cluster "c9" is attached to this hub: attach it, or give the attached cluster this alias`, codes.Unauthenticated,
		},
		"of a frozen cluster":   {call{token: good, cluster: "frozen"}, "is frozen", codes.Unavailable},
		"another cluster's UID": {call{token: good, cluster: "other"}, "another cluster answers", codes.Unavailable},
		"no link":               {call{token: good, cluster: "linkless"}, "none of its API servers", codes.Unavailable},
		"no cluster":            {call{token: good}, "clusterid is missing", codes.Unauthenticated},
		"two clusters":          {call{token: good, cluster: "c1", more: metadata.Pairs("clusterid", "c2")}, "once", codes.Unauthenticated},
		"other audience": {
			call{token: token(one, testbed.TokenOptions{Audience: "vault"}), cluster: "c1"},
			"audience", codes.Unauthenticated,
		},
		"of the API server": {call{token: token(one, testbed.TokenOptions{}), cluster: "c1"}, "audience", codes.Unauthenticated},
		"forged": {
			call{token: forged("isthmus", time.Now().Add(time.Hour)), cluster: "c1"},
			"does not accept", codes.Unauthenticated,
		},
		"plaintext": {call{token: good, cluster: "c1", plain: true}, "TLS only", codes.Unauthenticated},
		"no token":  {call{}, "client certificate of the mesh", codes.Unauthenticated},
		"basic": {
			call{more: metadata.Pairs("authorization", "Basic abc", "clusterid", "c1")},
			"Bearer TOKEN", codes.Unauthenticated,
		},
		"signature of another":   {call{token: swapped(good, bound), cluster: "c1"}, "does not accept", codes.Unauthenticated},
		"not a JSON Web Token":   {call{token: "abc", cluster: "c1"}, "JSON Web Token", codes.Unauthenticated},
		"longer than any":        {call{token: Token(strings.Repeat("a.", maxToken)), cluster: "c1"}, "JSON Web Token", codes.Unauthenticated},
		"expired, says the text": {call{token: forged("isthmus", time.Now().Add(-time.Minute)), cluster: "c1"}, "expired", codes.Unauthenticated},
	} {
		w.tokens.throttle = newThrottle()
		got, err := w.Identify(c.context(t))
		switch {
		case status.Code(err) != c.code || c.want != "" && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %s %q", name, err, c.code, c.want)
		case c.want == "" && (got.Workload != workload("shop", "web") || !slices.Equal(got.Clusters, []federation.ClusterID{"c1"}) ||
			got.Certified):
			t.Errorf("%s: proves %+v", name, got)
		case c.want == "" && (got.Pod != map[Token]string{bound: "web-1"}[c.token] || time.Until(got.Ends) > time.Hour+time.Minute):
			t.Errorf("%s: pod %q, ends %s", name, got.Pod, got.Ends)
		}
	}
	one.Delete("apiVersion: v1\nkind: Pod\nmetadata: {name: web-1, namespace: shop}\n")
	await(t, "the token of a pod that is gone to be refused", func() bool { // an API server learns of it a moment later
		_, err := w.Identify(call{token: gone, cluster: "c1"}.context(t))
		clear(w.tokens.known)
		return status.Code(err) == codes.Unauthenticated
	})
	for _, secret := range []Token{good, bound, gone} {
		if strings.Contains(w.log.String(), string(secret)[len(secret)-40:]) {
			t.Error("the log has a token")
		}
	}
}

// swapped has the payload of one token and the signature of another.
func swapped(a, b Token) Token {
	one, two := strings.Split(string(a), "."), strings.Split(string(b), ".")
	return Token(one[0] + "." + one[1] + "." + two[2])
}

// A hub without the right to review says so, and that it cannot tell is not
// remembered.
func TestS02TheRightToReview(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "one")
	w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: c.uid}})
	defer w.attach(t, "c1", c.client)()
	token := Token(c.ServiceAccountToken(testbed.TokenOptions{Namespace: "shop", Account: "web", Audience: "isthmus"}))
	identify := func() error { _, err := w.Identify(call{token: token, cluster: "c1"}.context(t)); return err }
	manifest, err := os.ReadFile("../../deploy/kubernetes/tokens.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, binding, _ := strings.Cut(string(manifest), "---\n")
	c.Delete(binding)
	await(t, "the right to be gone", func() bool {
		err := identify()
		clear(w.tokens.known)
		return status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "create on tokenreviews")
	})
	c.Apply(binding)
	await(t, "the right to be back", func() bool { return identify() == nil })
	c.Kill()
	if err := identify(); err != nil {
		t.Errorf("a token that was found to be good a moment ago: %v", err)
	}
	w.now = w.now.Add(rememberGood)
	if err := identify(); status.Code(err) != codes.Unavailable {
		t.Errorf("later, with the API server dead: %v", err)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testbed.WaitFor(t, 5*time.Minute, what, func() error {
		if !ok() {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}
