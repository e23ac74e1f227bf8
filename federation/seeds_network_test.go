package federation

import (
	"fmt"
	"testing"
)

// reasonsOf applies an edit and returns the reasons of its changes.
func reasonsOf(s *Snapshot, e Edit) (*Snapshot, Reason) {
	next, changes := Next(s, e)
	return next, changes.Reasons()
}

func ofAccount(addr, account string) Endpoint {
	e := endpoint(addr, 8080)
	e.ServiceAccount, e.TLSMode = account, MutualTLS
	return e
}

// TestSeed62FlappingEndpointIsNoFullPush: from one endpoint to none and back ten
// times, nothing but endpoints changes.
func TestSeed62FlappingEndpointIsNoFullPush(t *testing.T) {
	k := key("web.a", "a")
	here, none := set(shardOf("c1"), map[ServiceKey]*Shard{k: web("")}), set(shardOf("c1"), map[ServiceKey]*Shard{k: web("")})
	here.Services.Set[k] = web("", endpoint("10.0.0.1", 80))
	s := after(here)
	for round := range 10 {
		for _, e := range []Edit{none, here} {
			var got Reason
			s, got = reasonsOf(s, e)
			if got != ReasonEndpoints {
				t.Fatalf("round %d: the change is %s, want endpoints alone", round, got)
			}
		}
	}
}

// TestSeed63FirstEndpointsAndChangedAccounts: the first endpoints ever of a service
// that is known are endpoints alone; a changed set of accounts is more.
func TestSeed63FirstEndpointsAndChangedAccounts(t *testing.T) {
	k := key("web.a", "a")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("")}))
	s, got := reasonsOf(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", endpoint("10.0.0.1", 80))}))
	if got != ReasonEndpoints {
		t.Errorf("the first endpoints are %s", got)
	}
	_, got = reasonsOf(s, set(shardOf("c1"),
		map[ServiceKey]*Shard{k: web("", ofAccount("10.0.0.1", "a/robot"))}))
	if got&ReasonAccounts == 0 {
		t.Errorf("another account is %s", got)
	}
}

// TestSeed64ClustersWithAccountsOfTheirOwn: two clusters whose accounts for a
// service differ and stay may change endpoints in turn without more than that.
func TestSeed64ClustersWithAccountsOfTheirOwn(t *testing.T) {
	k := key("web.a", "a")
	say := func(cluster, account string, n int) Edit {
		return set(shardOf(cluster), map[ServiceKey]*Shard{k: web("", ofAccount(fmt.Sprintf("10.0.0.%d", n+1), account))})
	}
	s := after(say("c1", "a/one", 100), say("c2", "a/two", 200))
	for n := range 10 {
		for cluster, account := range map[string]string{"c1": "a/one", "c2": "a/two"} {
			var got Reason
			s, got = reasonsOf(s, say(cluster, account, n))
			if got != ReasonEndpoints {
				t.Fatalf("endpoints of %s changed, and the change is %s", cluster, got)
			}
		}
	}
}

// TestSeed66EndpointsOfTheOtherClusterStay.
func TestSeed66EndpointsOfTheOtherClusterStay(t *testing.T) {
	k := key("web.a", "a")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", endpoint("10.0.1.1", 80))}),
		set(shardOf("c2"), map[ServiceKey]*Shard{k: web("", endpoint("10.0.2.1", 80))}))
	s, _ = Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", endpoint("10.0.1.2", 80))}))
	if got := fmt.Sprint(addresses(mustService(t, s, k).Instances(80))); got != "[10.0.1.2 10.0.2.1]" {
		t.Errorf("the endpoints are %s", got)
	}
}
