package xds

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame is a response as it goes on the wire: a few bytes of the stream's own
// around the shared bytes of the resources.
type frame struct{ buffers mem.BufferSlice }

// The fields of DiscoveryResponse and DeltaDiscoveryResponse; number 1 is
// version_info and system_version_info.
const (
	fieldVersion protowire.Number = 1
	fieldTypeURL protowire.Number = 4
	fieldNonce   protowire.Number = 5
	fieldRemoved protowire.Number = 6 // delta only
)

func (r *response) frame() frame {
	head := appendBytes(nil, fieldVersion, r.version)
	head = appendBytes(head, fieldTypeURL, string(r.kind))
	head = appendBytes(head, fieldNonce, r.nonce)
	for _, name := range r.removed {
		head = appendBytes(head, fieldRemoved, name)
	}
	buffers := make(mem.BufferSlice, 1, 1+2*len(r.resources))
	buffers[0] = mem.SliceBuffer(head)
	for _, res := range r.resources {
		if r.delta {
			buffers = append(buffers, res.delta[0], res.delta[1])
		} else {
			buffers = append(buffers, res.sotw[0], res.sotw[1])
		}
	}
	return frame{buffers}
}

// codec is gRPC's protobuf codec that also knows frames.
type codec struct{}

// Name is that of gRPC's own codec, so that clients see no difference.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case frame:
		return v.buffers, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return nil, fmt.Errorf("encoding a message: %T is not a protobuf message", v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("decoding a message: %T is not a protobuf message", v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return proto.Unmarshal(buffer.ReadOnlyData(), m)
}
