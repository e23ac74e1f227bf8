package federation

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// The maps of a snapshot are keyed by strings in which NUL ends a name, so that
// their order is the order of the names and no two names run together. What a key
// says is read from the key, which shares its memory.

const nul = "\x00"

func (k ServiceKey) sortKey() string { return string(k.Hostname) + nul + k.Namespace }

func serviceKeyOf(key string) ServiceKey {
	host, ns, _ := strings.Cut(key, nul)
	return ServiceKey{Hostname: Hostname(host), Namespace: ns}
}

func (k ShardKey) prefix() string { return string(k.Cluster) + nul + string(k.Provider) + nul }

// shardKeyOf reads the shard at the beginning of a key.
func shardKeyOf(k string) ShardKey {
	cluster, rest, _ := strings.Cut(k, nul)
	provider, _, _ := strings.Cut(rest, nul)
	return ShardKey{Cluster: ClusterID(cluster), Provider: Provider(provider)}
}

func clusterPrefix(id ClusterID) string { return string(id) + nul }

func (k AddressKey) sortKey() string {
	a := k.Addr.As16()
	return string(k.Network) + nul + string(a[:])
}

func addressKeyOf(key string) AddressKey {
	at := len(key) - 16
	return AddressKey{
		Network: NetworkID(key[:at-1]),
		Addr:    netip.AddrFrom16([16]byte([]byte(key[at:]))).Unmap(),
	}
}

// vipBytes is how long the address in the key of a VIP is.
const vipBytes = 16

func vipPrefix(vip netip.Addr) string {
	a := vip.As16()
	return string(a[:])
}

// portBytes is how long the number in the key of a port is.
const portBytes = 2

func portPrefix(number uint16) string {
	return string(binary.BigEndian.AppendUint16(nil, number))
}

func vipKey(vip netip.Addr, service ServiceKey) string { return vipPrefix(vip) + service.sortKey() }

func portKey(number uint16, service ServiceKey) string {
	return portPrefix(number) + service.sortKey()
}
