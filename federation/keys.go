package federation

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// The trees of a snapshot are keyed by bytes in which NUL ends a name, so that
// their order is the order of the names and no two names run together.

const nul = "\x00"

func (k ServiceKey) bytes() []byte { return []byte(string(k.Hostname) + nul + k.Namespace) }

func serviceKeyOf(key string) ServiceKey {
	host, ns, _ := strings.Cut(key, nul)
	return ServiceKey{Hostname: Hostname(host), Namespace: ns}
}

func (k ShardKey) prefix() string { return string(k.Cluster) + nul + string(k.Provider) + nul }

// shardKeyOf reads the shard at the beginning of a key.
func shardKeyOf(k []byte) ShardKey {
	cluster, rest, _ := strings.Cut(string(k), nul)
	provider, _, _ := strings.Cut(rest, nul)
	return ShardKey{Cluster: ClusterID(cluster), Provider: Provider(provider)}
}

func clusterPrefix(id ClusterID) []byte { return []byte(string(id) + nul) }

func (k AddressKey) bytes() []byte {
	a := k.Addr.As16()
	return append([]byte(string(k.Network)+nul), a[:]...)
}

func addressKeyOf(key string) AddressKey {
	at := len(key) - 16
	return AddressKey{
		Network: NetworkID(key[:at-1]),
		Addr:    netip.AddrFrom16([16]byte([]byte(key[at:]))).Unmap(),
	}
}

func vipKey(vip netip.Addr, service ServiceKey) []byte {
	a := vip.As16()
	return append(a[:], service.bytes()...)
}

func portKey(number uint16, service ServiceKey) []byte {
	return append(binary.BigEndian.AppendUint16(nil, number), service.bytes()...)
}
