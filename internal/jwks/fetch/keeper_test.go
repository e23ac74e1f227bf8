package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuers answer fetches, as a test says.
type issuers struct {
	mu      sync.Mutex
	answers map[string]string // by URI; without one a fetch fails
	fetched []string
	err     error // of all fetches
}

func (i *issuers) fetch(ctx context.Context, from federation.KeySource, timeout time.Duration) (string, error) {
	if strings.HasPrefix(from.URI, "https://slow") {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetched = append(i.fetched, fmt.Sprint(from.URI, " ", timeout))
	keys, ok := i.answers[from.URI]
	if i.err != nil {
		return "", i.err
	}
	if !ok {
		return "", errors.New("the server answers with status 500")
	}
	return keys, nil
}

func (i *issuers) answer(uri, keys string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.answers, uri)
	if keys != "" {
		i.answers[uri] = keys
	}
}

func (i *issuers) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

func (i *issuers) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.fetched)
}

// mesh is an aggregate with a Keeper, inside a bubble of synctest.
type mesh struct {
	*issuers
	t         *testing.T
	aggregate *federation.Aggregate
	operator  *federation.Writer
	log       bytes.Buffer
	counted   string
}

func (m *mesh) Fetched(bool)                      {}
func (m *mesh) Sources(fresh, stale, missing int) { m.counted = fmt.Sprint(fresh, stale, missing) }

func open(t *testing.T) *mesh {
	a := federation.NewAggregate(nil)
	m := &mesh{
		t: t, aggregate: a, issuers: &issuers{answers: map[string]string{}},
		operator: a.Open(federation.ShardKey{Provider: federation.Operator}),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	keeper := New(Options{
		Snapshots: a, To: a.Open(federation.ShardKey{Provider: "Keys"}), Metrics: m, Fetch: m.fetch,
		Logger: slog.New(slog.NewTextHandler(&m.log, nil)),
	})
	go func() { done <- keeper.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return m
}

func rule(uri string) *security.JWTRule { return &security.JWTRule{Issuer: "i", JwksUri: uri} }

// apply applies a RequestAuthentication; one without rules is deleted.
func (m *mesh) apply(namespace, name string, rules ...*security.JWTRule) {
	key := federation.RequestAuthenticationKind.Key(namespace, name)
	e := federation.Edit{}
	e.Objects.Gone = []federation.ObjectKey{key}
	if len(rules) > 0 {
		o := &federation.Object{Key: key, Digest: fmt.Sprint(rules), Spec: &security.RequestAuthentication{JwtRules: rules}}
		e.Objects = federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{key: o}}
	}
	m.operator.Update(e)
	synctest.Wait()
}

func (m *mesh) pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func (m *mesh) expect(uri, keys, problem string) {
	m.t.Helper()
	synctest.Wait()
	got, _ := federation.KeySetIn(m.aggregate.Latest(), federation.KeySource{URI: uri})
	if got.Keys != keys || got.Problem != problem {
		m.t.Errorf("of %s the hub has %+v, want %q and the problem %q", uri, got, keys, problem)
	}
}

const failed = "the server answers with status 500"

// TestK10KeysAreFetchedOnceForAllObjects: each URI is fetched once, again after 20 min, and not any more
// when no object needs it.
func TestK10KeysAreFetchedOnceForAllObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t)
		m.answer("https://a", "one")
		long := rule("https://a")
		long.Timeout = durationpb.New(7 * time.Second)
		m.apply("shop", "first", long)
		m.apply("bank", "second", rule("https://a"), rule("https://a"))
		m.expect("https://a", "one", "")
		if got := fmt.Sprint(m.fetched); got != "[https://a 7s]" {
			t.Errorf("fetched are %s", got)
		}
		m.answer("https://a", "two")
		m.pass(every - time.Second)
		m.expect("https://a", "one", "")
		m.pass(2 * time.Second)
		m.expect("https://a", "two", "")
		m.apply("shop", "first")
		m.expect("https://a", "two", "")
		m.apply("bank", "second")
		before := m.count()
		m.pass(10 * every)
		if set, has := federation.KeySetIn(m.aggregate.Latest(), federation.KeySource{URI: "https://a"}); has || m.count() != before {
			t.Errorf("without an object the hub has %v, and fetched %d times more", set, m.count()-before)
		}
	})
}

// TestK10TheLastGoodKeysStay: a server that fails is asked sooner again, less and less often, and what it
// said stays in use.
func TestK10TheLastGoodKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t)
		m.apply("shop", "a", rule("https://user:secret@a/keys?token=secret"))
		m.expect("https://user:secret@a/keys?token=secret", "", failed)
		m.answer("https://user:secret@a/keys?token=secret", "one")
		m.pass(2 * firstPause)
		m.expect("https://user:secret@a/keys?token=secret", "one", "")
		m.answer("https://user:secret@a/keys?token=secret", "")
		m.pass(every)
		m.expect("https://user:secret@a/keys?token=secret", "one", failed)
		if m.counted != "0 1 0" {
			t.Errorf("counted are %s", m.counted)
		}
		before := m.count()
		m.pass(24 * time.Hour)
		if n := m.count() - before; n < 24*60/7 || n > 24*60/3 {
			t.Errorf("a server that fails is asked %d times a day", n)
		}
		m.expect("https://user:secret@a/keys?token=secret", "one", failed)
		log := m.log.String()
		if strings.Contains(log, "secret") || strings.Count(log, "failed") != 2 || !strings.Contains(log, "uri=https://a/keys ") {
			t.Errorf("the log says\n%s", log)
		}
	})
}

// TestK10OneNamespaceHasAShareOfTheURIs: more URIs than allowed are not fetched, and cost no older
// object and no other namespace its keys.
func TestK10OneNamespaceHasAShareOfTheURIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t)
		m.answer("https://other", "other")
		var many []*security.JWTRule
		for i := range mostOfNamespace + 1 {
			m.answer(fmt.Sprint("https://", i), "many")
			many = append(many, rule(fmt.Sprint("https://", i)))
		}
		m.apply("shop", "many", many...)
		m.apply("bank", "other", rule("https://other"))
		last := fmt.Sprint("https://", mostOfNamespace)
		m.expect("https://99", "many", "")
		m.expect(last, "", "older objects of namespace shop name 100 other URIs, the most of one namespace")
		m.expect("https://other", "other", "")
		m.apply("bank", "the same", rule(last))
		m.expect(last, "many", "")
		m.apply("bank", "the same")
		m.apply("shop", "many", many[1:]...)
		m.expect(last, "many", "")
	})
}

// TestK10ASlowServerHoldsUpNoOther: while one does not answer, keys of others come.
func TestK10ASlowServerHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t)
		m.answer("https://a", "one")
		m.apply("shop", "slow", rule("https://slow"))
		m.apply("shop", "fast", rule("https://a"))
		m.expect("https://a", "one", "")
		m.expect("https://slow", "", "")
		m.pass(6 * time.Second)
		m.expect("https://slow", "", "the server did not answer in time")
	})
}

// TestR93SlowServersOfANamespaceHoldUpNoOther: all servers of a namespace do not answer within the
// longest timeout, and the keys of another namespace come at once.
func TestR93SlowServersOfANamespaceHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t)
		m.answer("https://a", "one")
		var slow []*security.JWTRule
		for i := range mostOfNamespace {
			r := rule(fmt.Sprint("https://slow-", i))
			r.Timeout = durationpb.New(jwks.MostTimeout)
			slow = append(slow, r)
		}
		m.apply("hostile", "slow", slow...)
		m.apply("shop", "fast", rule("https://a"))
		m.expect("https://a", "one", "")
	})
}
