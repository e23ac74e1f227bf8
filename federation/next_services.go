package federation

import (
	"iter"
	"slices"

	"isthmus.dev/isthmus/internal/btree"
)

// servicesTxn are the services of a draft, and their indexes.
type servicesTxn struct {
	btree.Txn[*Service]
	members  btree.Txn[struct{}]
	ports    btree.Txn[struct{}]
	vips     btree.Txn[struct{}]
	aliases  btree.Txn[ServiceKey]
	names    btree.Txn[ServiceKey]
	hadNames bool // the snapshot before had any
}

func (x *Services) txn() servicesTxn {
	return servicesTxn{
		Txn: x.byKey.Txn(), members: x.members.Txn(), ports: x.ports.Txn(), vips: x.vips.Txn(), aliases: x.aliases.Txn(), names: x.names.Txn(),
		hadNames: x.names.Len() > 0,
	}
}

func (x *servicesTxn) commit() Services {
	return Services{
		byKey: x.Commit(), members: x.members.Commit(), ports: x.ports.Commit(), vips: x.vips.Commit(),
		aliases: x.aliases.Commit(), names: x.names.Commit(),
	}
}

// from yields the services of the shards below the prefix.
func (x *servicesTxn) from(prefix string) iter.Seq[ServiceKey] {
	return func(yield func(ServiceKey) bool) {
		x.members.WalkPrefix(prefix, func(k string, _ struct{}) bool {
			return !yield(serviceKeyOf(k[len(shardKeyOf(k).prefix()):]))
		})
	}
}

// replace replaces the old service; either may be nil.
func (x *servicesTxn) replace(key ServiceKey, old, now *Service) {
	if now == nil {
		x.Delete(key.sortKey())
	} else {
		x.Set(key.sortKey(), now)
	}
	x.indexPorts(key, old, now)
	x.indexVIPs(key, old, now)
	x.indexExternalName(key, old, now)
}

func (x *servicesTxn) indexPorts(key ServiceKey, old, now *Service) {
	before, after := tcpPorts(old), tcpPorts(now)
	for _, p := range before {
		if !slices.Contains(after, p) {
			x.ports.Delete(portKey(p, key))
		}
	}
	for _, p := range after {
		if !slices.Contains(before, p) {
			x.ports.Set(portKey(p, key), struct{}{})
		}
	}
}

func tcpPorts(s *Service) []uint16 {
	if s == nil {
		return nil
	}
	var numbers []uint16
	for _, p := range s.Ports {
		if p.Protocol.Transport() == TransportTCP {
			numbers = append(numbers, p.Number)
		}
	}
	return numbers
}
