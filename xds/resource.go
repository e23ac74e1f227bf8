package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy"
)

// digest identifies content. Digests of several resources add up to one that
// does not depend on their order.
type digest [2]uint64

func (d digest) plus(o digest) digest  { return digest{d[0] + o[0], d[1] + o[1]} }
func (d digest) minus(o digest) digest { return digest{d[0] - o[0], d[1] - o[1]} }

func (d digest) String() string {
	b := binary.BigEndian.AppendUint64(nil, d[0])
	return hex.EncodeToString(binary.BigEndian.AppendUint64(b, d[1]))
}

func digestOf(value []byte) digest {
	sum := sha256.Sum256(value)
	return digest{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])}
}

// resource is one serialised resource, shared by all streams; it is never
// changed. One without body is what a client says it has of an earlier stream.
type resource struct {
	name    string
	version string // on the wire: a hash of the bytes
	hash    digest
	refs    references
	fixed   bool          // exists whatever the services
	home    *group        // that built it; nil: none did
	late    bool          // has its bytes only in the response that is sent
	sotw    [2]mem.Buffer // field "resources" of a DiscoveryResponse: its head, and the body
	delta   [2]mem.Buffer // the same of a DeltaDiscoveryResponse
}

// weight is what the resource counts among those of services.
func (r *resource) weight() int {
	if r.fixed {
		return 0
	}
	return 1
}

// value is the message, serialised, of a resource with a body of its own.
func (r *resource) value() []byte {
	body := r.sotw[1].ReadOnlyData()
	_, _, n := protowire.ConsumeField(body) // its type
	_, _, tag := protowire.ConsumeTag(body[n:])
	value, _ := protowire.ConsumeBytes(body[n+tag:])
	return value
}

func (r *resource) hasBody() bool { return r.late || r.sotw[1] != nil }

// Field numbers of the discovery protocol.
const (
	fieldResources  protowire.Number = 2 // of both responses
	fieldAnyURL     protowire.Number = 1
	fieldAnyValue   protowire.Number = 2
	fieldResVersion protowire.Number = 1 // of Resource
	fieldResBody    protowire.Number = 2
	fieldResName    protowire.Number = 3
)

// newResource serialises the message. Equal messages give equal bytes.
func newResource(t envoy.Type, name string, m proto.Message) (*resource, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("serialising %s %q: %w", t, name, err)
	}
	r := serialised(t, name, value)
	r.refs = referencesOf(m)
	return r, nil
}

// serialised frames the bytes of a message, whose references are yet to be said.
func serialised(t envoy.Type, name string, value []byte) *resource {
	r := &resource{name: name, hash: digestOf(value)}
	r.version = r.hash.String()[:16]
	body := appendBytes(nil, fieldAnyURL, string(t))
	body = appendBytes(body, fieldAnyValue, value)
	r.sotw[1] = mem.SliceBuffer(body)
	setHeads(r)
	return r
}

// setHeads makes what goes before the body, which depends on the version.
func setHeads(r *resource) {
	body := r.sotw[1]
	r.sotw[0] = mem.SliceBuffer(appendHead(nil, fieldResources, body.Len()))
	inner := appendBytes(nil, fieldResVersion, r.version)
	inner = appendBytes(inner, fieldResName, r.name)
	inner = appendHead(inner, fieldResBody, body.Len())
	head := appendHead(nil, fieldResources, len(inner)+body.Len())
	r.delta = [2]mem.Buffer{mem.SliceBuffer(append(head, inner...)), body}
}

// maxVersion bounds the bytes of versions that are kept: the hub's own are shorter.
const maxVersion = 128

// claimed is what a client says that it has. A version that is not the hub's is like none.
func claimed(name, version string) *resource {
	if len(version) > maxVersion {
		version = ""
	}
	return &resource{name: name, version: version}
}

// lateSize is what the bytes of a late resource are reckoned to be.
const lateSize = 8 << 10

func (r *resource) size() int {
	if r.late {
		return lateSize
	}
	return r.delta[0].Len() + r.delta[1].Len()
}

func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func appendBytes[T ~string | ~[]byte](b []byte, field protowire.Number, value T) []byte {
	return append(appendHead(b, field, len(value)), value...)
}

// sameContent reports whether a client that has a needs no b; nil is absent.
func sameContent(a, b *resource) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.version == b.version
}
