package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
)

// insideClient speaks to the embedded server. Its requests end when the server does.
func insideClient(server *embed.Etcd, in *inside) *clientv3.Client {
	c := v3client.New(server.Server)
	c.KV = clientv3.NewKVFromKVClient(insideKV{adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server.Server)), in}, c)
	c.Lease = insideLease{c.Lease, in}
	c.Maintenance = insideMaintenance{c.Maintenance, in}
	return c
}

// answered is what a request is answered from inside.
func answered[A any](ctx context.Context, in *inside, send func(context.Context) (A, error)) (A, error) {
	var answer, none A
	err := in.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = send(ctx)
		return err
	})
	if err != nil {
		return none, err // an answer that comes too late is dropped
	}
	return answer, nil
}

type insideKV struct {
	pb.KVClient
	in *inside
}

func (k insideKV) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return answered(ctx, k.in, func(ctx context.Context) (*pb.RangeResponse, error) { return k.KVClient.Range(ctx, r) })
}

func (k insideKV) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return answered(ctx, k.in, func(ctx context.Context) (*pb.PutResponse, error) { return k.KVClient.Put(ctx, r) })
}

func (k insideKV) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return answered(ctx, k.in, func(ctx context.Context) (*pb.DeleteRangeResponse, error) { return k.KVClient.DeleteRange(ctx, r) })
}

func (k insideKV) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return answered(ctx, k.in, func(ctx context.Context) (*pb.TxnResponse, error) { return k.KVClient.Txn(ctx, r) })
}

func (k insideKV) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return answered(ctx, k.in, func(ctx context.Context) (*pb.CompactionResponse, error) { return k.KVClient.Compact(ctx, r) })
}

type insideLease struct {
	clientv3.Lease
	in *inside
}

func (l insideLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return answered(ctx, l.in, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) { return l.Lease.Grant(ctx, ttl) })
}

func (l insideLease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return answered(ctx, l.in, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) { return l.Lease.Revoke(ctx, id) })
}

func (l insideLease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return answered(ctx, l.in, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		return l.Lease.KeepAliveOnce(ctx, id)
	})
}

type insideMaintenance struct {
	clientv3.Maintenance
	in *inside
}

func (m insideMaintenance) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	return answered(ctx, m.in, func(ctx context.Context) (*clientv3.StatusResponse, error) {
		return m.Maintenance.Status(ctx, endpoint)
	})
}

func (m insideMaintenance) AlarmDisarm(ctx context.Context, a *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	return answered(ctx, m.in, func(ctx context.Context) (*clientv3.AlarmResponse, error) { return m.Maintenance.AlarmDisarm(ctx, a) })
}
