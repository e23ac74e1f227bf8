package consul

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"golang.org/x/sync/semaphore"

	"isthmus.dev/isthmus/federation"
)

// tokenPath is where Consul tells about the token of the request.
const tokenPath = "/v1/acl/token/self"

// anonymous is the accessor of the token that Consul gives a request without one.
const anonymous = "00000000-0000-0000-0000-000000000002"

// datacenterIdentity is what tells one Consul from another: its datacenter and the node
// IDs of its servers. Servers are replaced one by one, so that one common server
// makes two identities the same Consul.
type datacenterIdentity struct {
	datacenter string
	servers    map[string]bool
}

// parseIdentity reads what String writes; nothing is the unknown identity.
func parseIdentity(s string) (datacenterIdentity, error) {
	if s == "" {
		return datacenterIdentity{}, nil
	}
	dc, ids, ok := strings.Cut(s, "/")
	if !ok || dc == "" || ids == "" {
		return datacenterIdentity{}, errors.New("reading the known identity: want DATACENTER/SERVER,SERVER")
	}
	id := datacenterIdentity{datacenter: dc, servers: map[string]bool{}}
	for server := range strings.SplitSeq(ids, ",") {
		id.servers[server] = true
	}
	return id, nil
}

func (i datacenterIdentity) String() string {
	return i.datacenter + "/" + strings.Join(slices.Sorted(maps.Keys(i.servers)), ",")
}

func (i datacenterIdentity) known() bool { return i.datacenter != "" }

func (i datacenterIdentity) same(o datacenterIdentity) bool {
	if i.datacenter != o.datacenter {
		return false
	}
	for server := range i.servers {
		if o.servers[server] {
			return true
		}
	}
	return false
}

// guard proves that answers come from the Consul that was known before and that
// the token still sees all of it. Two proofs never run at once, so that they
// need one connection.
type guard struct {
	client *client
	turn   *semaphore.Weighted // of the proof that runs

	mu     sync.Mutex // never held over a request
	id     datacenterIdentity
	http2  bool
	proven time.Time // when the last good proof with the token began
	// highest is the highest index that was seen of each table.
	highest map[string]uint64
	leader  string // the address of the servers' leader, as it was seen last
}

func newGuard(c *client, expect datacenterIdentity) *guard {
	return &guard{client: c, turn: semaphore.NewWeighted(1), id: expect}
}

// prove reads Consul's own service, which must be visible, and, when asked to,
// the token itself. It returns a refusal where rights or identity are wrong.
func (g *guard) prove(ctx context.Context, token bool) error {
	if g.turn.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer g.turn.Release(1)
	return g.check(ctx, token)
}

// proveSince proves the source and the token unless a proof that began since then has.
func (g *guard) proveSince(ctx context.Context, since time.Time) error {
	if g.turn.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer g.turn.Release(1)
	if !g.provenAt().Before(since) {
		return nil
	}
	return g.check(ctx, true)
}

// check needs the turn.
func (g *guard) check(ctx context.Context, token bool) error {
	began := time.Now()
	found, err := g.canary(ctx)
	if err != nil {
		return err
	}
	if token {
		if err := g.tokenSelf(ctx); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id.known() && !g.id.same(found) {
		return &refusal{other: true, msg: fmt.Sprintf(
			"another Consul answers (%s instead of %s); what was known is kept; confirm the cluster or correct consul.address",
			quote(found.String()), quote(g.id.String()))}
	}
	g.id = found
	if token {
		g.proven = began
	}
	return nil
}

// identity is the one that was proven last.
func (g *guard) identity() datacenterIdentity {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id
}

func (g *guard) provenAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proven
}

func (g *guard) multiplexed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.http2
}

func (g *guard) setMultiplexed(http2 bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.http2 = http2
}

func (g *guard) canary(ctx context.Context) (datacenterIdentity, error) {
	var servers []entry
	a, err := g.client.get(ctx, request{kind: CountCanary, path: "/v1/health/service/" + canaryService, timeout: requestTimeout}, &servers)
	var odd *unreadable
	if errors.As(err, &odd) {
		return datacenterIdentity{}, &refusal{msg: "consul.address does not answer like Consul: " + odd.msg}
	}
	if err != nil {
		return datacenterIdentity{}, g.explain(ctx, err)
	}
	if a.filtered {
		return datacenterIdentity{}, noRights()
	}
	if len(servers) == 0 {
		return datacenterIdentity{}, g.nothing(ctx, a)
	}
	g.setMultiplexed(a.http2)
	id := datacenterIdentity{servers: map[string]bool{}}
	for _, s := range servers {
		if s.Node != nil && isID(s.Node.ID, mostID) && isID(s.Node.Datacenter, mostDatacenter) {
			id.datacenter = s.Node.Datacenter
			id.servers[s.Node.ID] = true
		}
	}
	switch {
	case !id.known():
		return datacenterIdentity{}, errors.New("reading consul's own service: its servers have no node ID, or no name of a datacenter")
	case len(id.servers) > maxServers:
		return datacenterIdentity{}, &refusal{msg: fmt.Sprintf("consul.address does not answer like Consul: it has more than %d servers", maxServers)}
	}
	return id, nil
}

// explain returns errNoLeader for a silence that is due to it: servers without a leader hold
// all requests for 7 s, but say at once that they have none.
func (g *guard) explain(ctx context.Context, err error) error {
	var silent *noAnswer
	if !errors.As(err, &silent) {
		return err
	}
	var leader string
	_, asked := g.client.get(ctx, request{kind: CountCanary, path: leaderPath, timeout: time.Second}, &leader)
	if errors.Is(asked, errNoLeader) || asked == nil && leader == "" {
		return errNoLeader
	}
	return err
}

// maxServers bounds an identity, which is kept, shown and compared everywhere. A
// datacenter has three to seven servers.
const maxServers = 100

// The lengths of IDs. Consul bounds the name of a datacenter only by the tags of its members, 512 bytes for all.
const (
	mostID         = 64
	mostDatacenter = 512
)

// isID tells the ID of a node and the name of a datacenter: Consul allows letters, digits,
// '-' and '_' in either. All else would make another identity of the one that was stored.
func isID(s string, most int) bool {
	return s != "" && len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }) < 0
}

// nothing explains an answer without the canary: no rights say so only by the
// default policy, and a Consul that has just been started lists no servers yet.
func (g *guard) nothing(ctx context.Context, a answer) error {
	if token, err := g.client.readToken(); a.deny && err == nil && token == "" {
		return noRights()
	}
	if err := g.tokenSelf(ctx); err != nil {
		return err
	}
	return errors.New("reading consul's own service: it lists no servers yet")
}

// tokenSelf proves that Consul takes the token for what it is; without a token
// or without ACLs there is nothing to prove.
func (g *guard) tokenSelf(ctx context.Context) error {
	if token, err := g.client.readToken(); err != nil || token == "" {
		return nil // the next read says what is wrong
	}
	var self api.ACLToken
	_, err := g.client.get(ctx, request{kind: CountToken, path: tokenPath, timeout: requestTimeout}, &self)
	var r *refusal
	var off *noACL
	switch {
	case errors.As(err, &off):
		return nil
	case errors.As(err, &r):
		return r
	case err != nil:
		return fmt.Errorf("reading the token itself: %w", err)
	case self.AccessorID == anonymous:
		return &refusal{msg: "consul sees no token in the requests: something on the way drops it; what was known is kept"}
	}
	return nil
}

func noRights() error {
	return &refusal{
		blind: true,
		msg:   `permission: the token may not see all services and nodes, so that its answers cannot be used; write a token with service_prefix "" and node_prefix "" read to tokenFile`,
	}
}

// edit is how the hub gets the identity.
func (i datacenterIdentity) edit() *federation.ClusterIdentity {
	return &federation.ClusterIdentity{UID: i.String()}
}
