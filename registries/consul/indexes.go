package consul

import (
	"context"
	"encoding/json"
	"errors"
)

const servicesPath = "/v1/catalog/services"

// tables are reads whose indexes are those of everything that a service is made of.
// The filters keep the answers small; rights are applied before them (Consul 1.20.1
// and later), so that an answer also tells whether the token sees everything.
var tables = []request{
	{kind: CountCanary, path: servicesPath, filter: `ServiceName == "consul"`, timeout: requestTimeout},
	{kind: CountCanary, path: "/v1/catalog/nodes", filter: `Node == ""`, timeout: requestTimeout},
	{kind: CountCanary, path: "/v1/health/state/critical", filter: `ServiceName == "consul"`, timeout: requestTimeout},
}

// compareServers reads the index of each table, and who leads. It returns errRelist where
// an index is lower than before: Consul was restored from a snapshot, and a long poll with
// an index from before the restore waits until it runs out, whatever has changed. The same
// holds where another server leads than before.
func (g *guard) compareServers(ctx context.Context) error {
	for _, table := range tables {
		var entries json.RawMessage
		a, err := g.client.get(ctx, table, &entries)
		switch {
		case err != nil:
			return err
		case a.filtered:
			return noRights()
		case g.sawIndex(table.path, a.index):
			return errRelist
		}
	}
	return g.compareLeader(ctx)
}

// leaderPath answers at once, with the leader's address or nothing.
const leaderPath = "/v1/status/leader"

// compareLeader returns errRelist where the servers have another leader than before. A
// server passes a long poll on to the leader: where that freezes, the poll stays with it
// although the next leader answers all new reads.
func (g *guard) compareLeader(ctx context.Context) error {
	var now string
	_, err := g.client.get(ctx, request{kind: CountCanary, path: leaderPath, timeout: requestTimeout}, &now)
	var r *refusal
	var odd *unreadable
	switch {
	case errors.As(err, &r), errors.As(err, &odd): // all else can be read: long polls go on without this
		return nil
	case err != nil:
		return err
	case now == "":
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.leader
	g.leader = now
	if before != "" && before != now {
		return errRelist
	}
	return nil
}

// sawIndex notes the index of a table. It reports whether a higher one was seen
// before.
func (g *guard) sawIndex(path string, index uint64) (wentBack bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wentBack = index != 0 && index < g.highest[path]
	if g.highest == nil {
		g.highest = map[string]uint64{}
	}
	g.highest[path] = max(g.highest[path], index)
	return wentBack
}

// forgetServers starts again: what is read next is compared with nothing.
func (g *guard) forgetServers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.highest, g.leader = nil, ""
}
