package xds

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/envoy"
)

// callers has an account for each identity with open streams.
type callers struct {
	mu     sync.Mutex
	open   map[string]*account
	stored func(change int) // what names without a resource cost changed, in bytes; must not block
}

// account is what the hub keeps only for the streams of callers with one identity. What others need as well,
// such as names of resources that exist, is not counted (R07). A nil account has no limits.
type account struct {
	callers  *callers
	identity string
	limits   Limits

	mu       sync.Mutex
	streams  int
	variants map[envoy.Variant]int // how many streams have it
	names    map[uint32]int        // how many subscriptions there are to a name that had no resource, by number
	bytes    int                   // what these and initial_resource_versions cost
	nodes    int                   // bytes of the nodes of the streams
}

// The cost of a name without a resource, beside its length. Each is at least what the data structures take.
const (
	nameCost         = 160 // of the name, once for all streams of the identity
	subscriptionCost = 64  // of each subscription to it
	claimCost        = 384 // of each that a client says it has
)

// enter opens a stream of the identity; leave must be called once.
func (c *callers) enter(identity string, limits Limits) (*account, error) {
	if identity == "" {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.open[identity]
	if a == nil {
		a = &account{callers: c, identity: identity, limits: limits, variants: map[envoy.Variant]int{}, names: map[uint32]int{}}
	}
	if a.streams >= limits.Streams {
		return nil, status.Errorf(codes.ResourceExhausted, "%s has %d streams open: the limit is %d (xds.maxStreamsPerIdentity)",
			identity, a.streams, limits.Streams)
	}
	a.streams++
	c.open[identity] = a
	return a, nil
}

func (a *account) leave() {
	if a == nil {
		return
	}
	a.callers.mu.Lock()
	defer a.callers.mu.Unlock()
	a.streams--
	if a.streams == 0 {
		delete(a.callers.open, a.identity)
	}
}

// vary counts a stream whose node is such a variant, in place of the one that it was before; nil: it was none.
func (a *account) vary(before *envoy.Variant, now envoy.Variant) error {
	if a == nil || before != nil && *before == now {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before != nil {
		a.forget(*before)
	}
	if a.variants[now] == 0 && len(a.variants) >= a.limits.Variants {
		return status.Errorf(codes.ResourceExhausted,
			"%s has streams of %d variants of its node already, the limit is %d (xds.maxVariantsPerIdentity): "+
				"use the same DNS domain, ports and capture settings for all of its proxies, and have a registry know their workloads, whose network, locality and labels then count",
			a.identity, len(a.variants), a.limits.Variants)
	}
	a.variants[now]++
	return nil
}

// vary counts the stream as one of the variant that its view says.
func (st *stream) vary() {
	now := st.view.Variant()
	st.excess = st.client.account.vary(st.variant, now)
	if st.excess != nil {
		st.variant = nil
		return
	}
	st.variant = &now
}

// release is that the stream of the variant has ended.
func (a *account) release(v envoy.Variant) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(v)
}

func (a *account) forget(v envoy.Variant) {
	a.variants[v]--
	if a.variants[v] <= 0 {
		delete(a.variants, v)
	}
}

// addNode counts what a stream keeps of its node. Streams of one identity may say different things, so that nothing is shared.
func (a *account) addNode(bytes int) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes+bytes > a.limits.NodeBytes {
		return status.Errorf(codes.ResourceExhausted,
			"the nodes of the streams of %s take too much memory: with this one, of %d bytes, they take more than %d, the limit "+
				"(xds.maxNodeBytesPerIdentity); give the workload fewer labels, or raise the limit", a.identity, bytes, a.limits.NodeBytes)
	}
	a.nodes += bytes
	return nil
}

func (a *account) removeNode(bytes int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes -= bytes
}

// addName counts a subscription to a name that has no resource.
func (a *account) addName(number uint32, length int) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	cost := subscriptionCost
	if a.names[number] == 0 {
		cost += nameCost + length
	}
	if err := a.add(cost); err != nil {
		return err
	}
	a.names[number]++
	return nil
}

func (a *account) removeName(number uint32, length int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	cost := subscriptionCost
	a.names[number]--
	if a.names[number] == 0 {
		delete(a.names, number)
		cost += nameCost + length
	}
	a.remove(cost)
}

// addClaims counts names of initial_resource_versions that have no resource.
func (a *account) addClaims(n int) error {
	if a == nil || n == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.add(n * claimCost)
}

func (a *account) removeClaims(n int) {
	if a == nil || n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(n * claimCost)
}

func (a *account) add(cost int) error {
	if a.bytes+cost > a.limits.UnknownNames {
		return status.Errorf(codes.ResourceExhausted,
			"the streams of %s name too many resources that do not exist: with this request they cost more than %d bytes, the limit "+
				"(xds.maxUnknownNameBytesPerIdentity); name only resources that the hub announces, or raise the limit",
			a.identity, a.limits.UnknownNames)
	}
	a.bytes += cost
	a.callers.stored(cost)
	return nil
}

func (a *account) remove(cost int) {
	a.bytes -= cost
	a.callers.stored(-cost)
}
