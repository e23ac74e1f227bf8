package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"isthmus.dev/isthmus/federation"
)

// Digest represents a set of things with their content. It is the sum of their
// hashes, so that it does not depend on order and follows a change at the cost
// of what changed. The zero Digest is that of no things.
type Digest [4]uint64

// With is the digest of the set with the thing in it.
func (d Digest) With(thing Digest) Digest {
	for i := range d {
		d[i] += thing[i]
	}
	return d
}

// Without is the digest of the set without the thing that was in it.
func (d Digest) Without(thing Digest) Digest {
	for i := range d {
		d[i] -= thing[i]
	}
	return d
}

// Bytes are those of the digest, always as many.
func (d Digest) Bytes() []byte {
	var out []byte
	for _, part := range d {
		out = binary.BigEndian.AppendUint64(out, part)
	}
	return out
}

func digestOf(kind string, content any) Digest {
	text, err := json.Marshal(content)
	if err != nil {
		panic("hashing a " + kind + ": " + err.Error()) // Impossible: every content has a JSON form.
	}
	sum := sha256.Sum256(append([]byte(kind+nul), text...))
	var d Digest
	for i := range d {
		d[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return d
}

// ServiceDigest represents a service's content, which has the shards that it was
// merged from.
func ServiceDigest(of *federation.Service) Digest { return digestOf("service", contentOf(of)) }

// ClusterDigest represents what a cluster is, and not for when the hub learned of
// it, which differs between hubs, nor for its services.
func ClusterDigest(of *federation.Cluster) Digest {
	return digestOf("cluster", []any{of.ID, of.Spec, of.Identity, of.Status.Phase, of.Status.Message, of.Problems})
}

// CountedClusterDigest is ClusterDigest with the numbers of services and endpoints.
func CountedClusterDigest(of *federation.Cluster) Digest {
	return ClusterDigest(of).With(digestOf("counts", []any{of.ID, of.Services, of.Endpoints}))
}

// NetworkDigest represents a network with what is known of its gateways.
func NetworkDigest(of *federation.Network) Digest {
	content := *of
	content.Version = 0
	return digestOf("network", content)
}

// ObjectDigest represents a configuration object at its revision.
func ObjectDigest(of *federation.Object) Digest {
	return digestOf("object", []any{of.Key, of.Revision, of.Digest})
}
