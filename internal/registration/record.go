package registration

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/text"
)

// recordOf is what the store has of the proxy while it is connected: the WorkloadEntry of a group, or what it reports
// about the WorkloadEntry that it names. Nil: nothing, since reports have no effect. The error is a *Refusal.
func (k *Keeper) recordOf(p Proxy, h health) (*config.Object, error) {
	if p.Group == "" {
		return k.reportOf(p, h)
	}
	manifest, err := entryOf(p, k.o.Snapshots.Latest(), k.o.Hub, h)
	if err != nil {
		return nil, err
	}
	return &config.Object{Key: p.key(), Manifest: manifest}, nil
}

// workload is that of the WorkloadEntry that the proxy names.
func (p Proxy) workload() federation.WorkloadKey {
	return federation.WorkloadKey{Namespace: p.Namespace, Name: p.Entry}
}

// ofTrustDomain refuses a proxy of another trust domain than that of WorkloadEntries.
func (p Proxy) ofTrustDomain(s *federation.Snapshot, hub federation.ClusterID) error {
	if domain := s.Read().TrustDomain(hub); p.TrustDomain != domain {
		return refuse(OtherIdentity, "WorkloadEntries are of the trust domain %q, and the proxy is proven to be of %q", domain, p.TrustDomain)
	}
	return nil
}

func (k *Keeper) reportOf(p Proxy, h health) (*config.Object, error) {
	entry, exists := config.ReportableIn(k.o.Views.Latest().State, p.workload())
	if !exists {
		return nil, refuse(NoEntry, "there is no WorkloadEntry %s: apply it, or correct ISTIO_META_WORKLOAD_ENTRY", p.workload())
	}
	address, err := k.prove(p, entry)
	if err != nil || !entry.Counts {
		return nil, err
	}
	o, err := config.NewWorkloadHealth(p.workload(), federation.WorkloadHealth{
		Node: p.Node, Account: p.Namespace + "/" + p.Account, Address: address, Unhealthy: text.Readable(h.unhealthy, mostReason),
	})
	if err != nil {
		return nil, refuse(Invalid, "its report cannot be written: %v", err)
	}
	return o, nil
}

// ignored reports whether reports about the WorkloadEntry that the proxy names have no effect.
func (k *Keeper) ignored(p Proxy) bool {
	entry, exists := config.ReportableIn(k.o.Views.Latest().State, p.workload())
	return exists && !entry.Counts
}

// prove returns at which address the proxy is that of the WorkloadEntry. Agents may connect through gateways, which have
// addresses of their own, but not from the address of another WorkloadEntry of the same account.
func (k *Keeper) prove(p Proxy, entry config.Reportable) (netip.Addr, error) {
	s := k.o.Snapshots.Latest()
	if account := p.Namespace + "/" + p.Account; account != entry.Account {
		return netip.Addr{}, refuse(OtherIdentity, "the WorkloadEntry %s is for the service account %s, and the proxy is proven to be %s",
			p.workload(), entry.Account, account)
	}
	if err := p.ofTrustDomain(s, k.o.Hub); err != nil {
		return netip.Addr{}, err
	}
	if p.Source.IsValid() && !slices.Contains(entry.Addresses, p.Source) && k.isSibling(s, p.Source, entry) {
		return netip.Addr{}, refuse(OtherAddress, "it connects from %s, the address of another WorkloadEntry of %s in its network: "+
			"if a gateway of it is there, give that WorkloadEntry a service account of its own", p.Source, entry.Account)
	}
	for _, own := range p.Addresses {
		if entry.By(entry.Account, own) {
			return own, nil
		}
	}
	return netip.Addr{}, refuse(OtherAddress,
		"the WorkloadEntry %s has the address %s, and the proxy says that it is at %s: correct the WorkloadEntry or the agent's address",
		p.workload(), joined(entry.Addresses), p.address())
}

// isSibling reports whether a WorkloadEntry with the account of the entry has the address in its network: networks may
// have the same addresses. What runs there could be the proxy. A workload of another account could not prove
// the entry's account: the proxy connects through it.
func (k *Keeper) isSibling(s *federation.Snapshot, address netip.Addr, entry config.Reportable) bool {
	for key, w := range federation.WorkloadsAnywhere(s, k.o.Hub, address) {
		if config.AccountOf(key, w) == entry.Account && cmp.Or(w.Network, federation.DefaultNetwork) == entry.Network {
			return true
		}
	}
	return false
}

func joined(addresses []netip.Addr) string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = a.String()
	}
	return strings.Join(all, ", ")
}

// register stores the record with a lease. A WorkloadEntry is judged as one that is applied.
func (k *Keeper) register(ctx context.Context, p Proxy, record *config.Object) ([]apply.Error, error) {
	if p.Group == "" {
		_, err := k.o.Leases.Register(ctx, *record, k.o.Grace)
		return nil, err
	}
	_, problems, err := k.o.Registrar.Register(ctx, record.Manifest, k.o.Grace)
	return problems, err
}

// stored is what is registered for a proxy now.
type stored struct {
	exists, leased bool
	node           string // that registered it; empty: it was not registered by a proxy
	unhealthy      string
}

func storedAt(v *config.View, p Proxy) stored {
	if p.Group == "" {
		said := config.ReportedIn(v.State, p.workload())
		if said == nil {
			return stored{}
		}
		return stored{exists: true, leased: true, node: said.Node, unhealthy: said.Unhealthy}
	}
	o, exists := v.State.Object(p.key())
	if !exists {
		return stored{}
	}
	var d struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(o.Manifest, &d) // what cannot be read names no proxy
	said := d.Metadata.Annotations
	return stored{exists: true, leased: !o.Expires.IsZero(), node: said[nodeAnnotation], unhealthy: said[federation.UnhealthyAnnotation]}
}
