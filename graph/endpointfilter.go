package graph

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// endpointFilter says which endpoints are listed.
type endpointFilter struct {
	model.EndpointFilter                    // zero: all
	address              federation.Address // zero: any
}

// endpointArguments reads what every list of endpoints is asked with.
func endpointArguments(
	list string, first *int, after *string, last *int, before *string, in *model.EndpointFilter,
) (model.Window, endpointFilter, error) {
	asked, err := window(list, first, after, last, before)
	if err != nil {
		return asked, endpointFilter{}, err
	}
	filter, err := newEndpointFilter(in)
	return asked, filter, err
}

func newEndpointFilter(in *model.EndpointFilter) (endpointFilter, error) {
	filter := endpointFilter{EndpointFilter: value(in)}
	if filter.Address == nil {
		return filter, nil
	}
	ip, err := federation.ParseIP(*filter.Address)
	if err != nil {
		return filter, transport.BadArgument("filter.address", "%q is %v; write one such as 10.0.0.7 or 2001:db8::7", cut(*filter.Address), err)
	}
	filter.address = federation.IPAddress(ip)
	return filter, nil
}

func (f endpointFilter) fits(of model.Endpoint) bool {
	return fits(f.ClusterID, of.ClusterID()) && fits(f.NetworkID, string(of.Of.Network)) &&
		(f.Address == nil || of.Of.Address == f.address) &&
		(f.Health == nil || string(*f.Health) == string(of.Of.Health)) &&
		fitsLocality(of.Of.Locality, f.Locality) &&
		!slices.ContainsFunc(f.Labels, func(wanted model.LabelInput) bool {
			value, has := of.Of.Labels[wanted.Key]
			return !has || value != wanted.Value
		})
}

func fitsLocality(of federation.Locality, wanted *model.LocalityInput) bool {
	return wanted == nil || fits(wanted.Region, of.Region) && fits(wanted.Zone, of.Zone) && fits(wanted.SubZone, of.SubZone)
}
