package proxies

import (
	"cmp"
	"errors"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
	"isthmus.dev/isthmus/internal/registration"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy"
)

// members has xds register proxies.
type members struct {
	keeper    *registration.Keeper
	snapshots *federation.Aggregate
}

// Join is part of xds.Members.
func (m members) Join(n envoy.Node, workload string, source netip.Addr) (xds.Membership, error) {
	who, err := authority.ParseWorkload(workload)
	if err != nil {
		return nil, status.Error(codes.PermissionDenied, "registering the proxy: it has not proven which workload it is")
	}
	joined, err := m.keeper.Join(registration.Proxy{
		Node: n.ID, Cluster: n.Cluster, TrustDomain: who.TrustDomain, Namespace: who.Namespace,
		Account: cmp.Or(who.ServiceAccount, "default"),
		Group:   n.Group, Entry: n.Entry, Source: source,
		Addresses: n.Addresses, Network: n.Network, Locality: n.Locality, Probed: n.Probed, Identity: n.Identity,
	})
	if err != nil {
		return nil, refusedStatus(err)
	}
	if joined == nil {
		return nil, nil
	}
	return membership{joined}, nil
}

// membership says why it ended as a gRPC status.
type membership struct{ *registration.Membership }

func (m membership) Err() error { return refusedStatus(m.Membership.Err()) }

// refusedCodes are the codes for the reasons of a refusal.
var refusedCodes = map[registration.Reason]codes.Code{
	registration.NoGroup: codes.FailedPrecondition, registration.OtherIdentity: codes.PermissionDenied,
	registration.NoEntry: codes.FailedPrecondition, registration.OtherAddress: codes.PermissionDenied,
	registration.Taken:   codes.FailedPrecondition,
	registration.TooMany: codes.ResourceExhausted, registration.Invalid: codes.InvalidArgument,
}

func refusedStatus(err error) error {
	var refusal *registration.Refusal
	if !errors.As(err, &refusal) {
		return status.Error(codes.Unavailable, "registering the proxy: the hub cannot do so now")
	}
	return status.Error(refusedCodes[refusal.Reason], refusal.Message)
}
