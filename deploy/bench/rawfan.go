package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// rawfan is the physical limit of the task: it answers the first request for a
// type with the bytes that the hub sent, and sends one recorded endpoint change
// to every stream, without looking at anything.
type rawfan struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	first  map[string]mem.Buffer
	change mem.Buffer

	mu      sync.Mutex
	streams map[chan struct{}]bool
}

func (s server) runRawfan(ctx context.Context) error {
	r := &rawfan{first: map[string]mem.Buffer{}, streams: map[chan struct{}]bool{}}
	files, err := filepath.Glob(filepath.Join(s.recording, "first-*"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there is no recording to replay"))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		r.first[filepath.Base(file)[len("first-"):]] = mem.SliceBuffer(data)
	}
	data, err := os.ReadFile(filepath.Join(s.recording, "change"))
	if err != nil {
		return err
	}
	r.change = mem.SliceBuffer(data)
	g := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")}), grpc.MaxRecvMsgSize(64<<20))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, r)
	return s.serve(ctx, g, func(int) { r.fanOut() })
}

func (r *rawfan) fanOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.streams {
		c <- struct{}{}
	}
}

// DeltaAggregatedResources replays.
func (r *rawfan) DeltaAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest,
	discoveryv3.DeltaDiscoveryResponse],
) error {
	changes := make(chan struct{}, 1024)
	r.mu.Lock()
	r.streams[changes] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.streams, changes)
		r.mu.Unlock()
	}()
	requests := make(chan string, 16)
	go func() {
		defer close(requests)
		for {
			q, err := stream.Recv()
			if err != nil {
				return
			}
			if q.GetResponseNonce() == "" {
				requests <- filepath.Base(q.GetTypeUrl())
			}
		}
	}()
	for {
		select {
		case kind, ok := <-requests:
			if !ok {
				return nil
			}
			if err := stream.SendMsg(r.first[kind]); err != nil {
				return err
			}
		case <-changes:
			if err := stream.SendMsg(r.change); err != nil {
				return err
			}
		}
	}
}

// rawCodec sends buffers as they are and leaves everything else to protobuf.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(mem.Buffer); ok {
		return mem.BufferSlice{b}, nil
	}
	return c.CodecV2.Marshal(v)
}
