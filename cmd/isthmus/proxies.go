package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/registries"
)

// counters give the API what is not part of a snapshot.
type counters struct{ *registries.Supervisor }

// Counters is part of graph.Counters.
func (c counters) Counters(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	return c.Activity(id)
}

// proxies show the fleet to the API: of several streams of a node the newest.
type proxies struct{ *fleet.Fleet }

// Proxies is part of graph.Proxies.
func (p proxies) Proxies() []model.Proxy {
	var all []model.Proxy
	for proxy := range p.Latest().Proxies() {
		shown := proxyModel(proxy)
		if last := len(all) - 1; last >= 0 && all[last].NodeID == shown.NodeID {
			all[last] = shown
			continue
		}
		all = append(all, shown)
	}
	return all
}

func proxyModel(p *fleet.Proxy) model.Proxy {
	out := model.Proxy{
		ID: model.ID(model.KindProxy, p.NodeID), NodeID: p.NodeID,
		Type:       model.ProxyType(capital(p.Type, string(model.ProxyTypeSidecar))),
		RouterMode: model.RouterMode(capital(p.RouterMode, string(model.RouterModeStandard))),
		ClusterID:  string(p.Cluster), Network: string(p.Network), Namespace: p.Namespace,
		Locality:    model.Locality{Region: p.Locality.Region, Zone: p.Locality.Zone, SubZone: p.Locality.SubZone},
		Addresses:   []string{},
		Labels:      []model.Label{},
		Delivery:    model.Delivery(capital(string(p.Protocol), string(model.DeliverySotw))),
		ConnectedAt: p.ConnectedAt,
		Sync:        []model.ProxySync{},
	}
	for _, address := range p.Addresses {
		out.Addresses = append(out.Addresses, address.String())
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		out.Labels = append(out.Labels, model.Label{Key: key, Value: p.Labels[key]})
	}
	if p.Version != "" {
		out.UserAgent = &p.Version
	}
	for _, typeURL := range slices.Sorted(maps.Keys(p.Sync)) {
		out.Sync = append(out.Sync, syncModel(typeURL, p.Sync[typeURL]))
	}
	return out
}

func syncModel(typeURL string, s fleet.Sync) model.ProxySync {
	out := model.ProxySync{
		TypeURL: typeURL, State: model.SyncState(s.State),
		VersionSent: given(s.VersionSent), VersionAcked: given(s.VersionAcked), LastError: given(s.LastError),
	}
	if !s.Since.IsZero() {
		out.Since = &s.Since
	}
	return out
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// capital spells a name as the API's enums do: sni-dnat is SNI_DNAT.
func capital(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
