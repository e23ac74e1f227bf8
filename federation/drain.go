package federation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// DrainKind is the kind of objects that take endpoints out of service; the specs of its
// objects are *DrainObject.
var DrainKind = Kind{MeshGroup, "Drain"}

// DrainObject takes endpoints out of service: those of a cluster, of a network or of a
// locality.
type DrainObject struct {
	Cluster   ClusterID `json:"cluster,omitempty"`
	NetworkID NetworkID `json:"networkID,omitempty"`
	Locality  string    `json:"locality,omitempty"` // REGION or REGION/ZONE
	Percent   *uint32   `json:"percent,omitempty"`  // of their requests that go elsewhere; nil: 100
	// Ramp is how long the share takes from RampFrom to Percent; empty: no time. It begins at
	// RampStart, or when the object was created.
	Ramp      string    `json:"ramp,omitempty"`
	RampFrom  uint32    `json:"rampFrom,omitempty"`
	RampStart time.Time `json:"rampStart,omitzero"`
	// MinRemaining is how many healthy endpoints of a service must be left without a drain;
	// 0 counts as 1. MinRemainingPercent is their share of all healthy endpoints.
	MinRemaining        uint32 `json:"minRemaining,omitempty"`
	MinRemainingPercent uint32 `json:"minRemainingPercent,omitempty"`
	// Force drains services that have less left.
	Force bool `json:"force,omitempty"`
}

// Share is the share of requests that go elsewhere when the ramp has ended, at most 100.
func (d *DrainObject) Share() uint32 {
	if d.Percent == nil {
		return 100
	}
	return min(*d.Percent, 100)
}

// covers reports whether the endpoint of the shard is one of those that are drained.
func (d *DrainObject) covers(group ShardEndpoints, e *Endpoint) bool {
	switch {
	case d.Cluster != "":
		return group.ClusterOf(e) == d.Cluster
	case d.NetworkID != "":
		return cmp.Or(e.Network, DefaultNetwork) == d.NetworkID
	case d.Locality != "":
		region, zone, hasZone := strings.Cut(d.Locality, "/")
		return e.Locality.Region == region && (!hasZone || e.Locality.Zone == zone)
	}
	return false
}

// refusal says why what is left of a service does not suffice; empty: it does.
func (d *DrainObject) refusal(left, all int) string {
	least := max(int(d.MinRemaining), 1)
	switch {
	case d.Force:
		return ""
	case left < least:
		return fmt.Sprintf("%d of %d healthy endpoints would be left, and %d must be", left, all, least)
	case left*100 < int(d.MinRemainingPercent)*all:
		return fmt.Sprintf("%d of %d healthy endpoints would be left, and %d %% must be", left, all, d.MinRemainingPercent)
	}
	return ""
}

// ServiceDrain is a Drain that covers endpoints of a service.
type ServiceDrain struct {
	Drain   ObjectKey
	Spec    *DrainObject
	Share   uint32 // of requests that go elsewhere now, in percent
	Refused string // why the service is not drained; empty: it is
}

// takes reports whether the Drain takes requests away from endpoints of the service now.
func (d ServiceDrain) takes() bool { return d.Refused == "" && d.Share > 0 }

// drainsOf are the Drains in force at that time, those with the largest share first: of
// several that cover an endpoint the first counts. One that takes nothing away yet is in
// force, so that it is known which services it will leave as they are.
func drainsOf(objects *objectsTxn, now time.Time) []ServiceDrain {
	var all []ServiceDrain
	objects.byKey.WalkPrefix(DrainKind.prefix(), func(_ string, o *Object) bool {
		spec, is := o.Spec.(*DrainObject)
		if !is {
			return false
		}
		share := RampOf(o).At(now)
		if share > 0 || spec.Share() > 0 {
			all = append(all, ServiceDrain{Drain: o.Key, Spec: spec, Share: share})
		}
		return false
	})
	slices.SortFunc(all, func(a, b ServiceDrain) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), a.Drain.Compare(b.Drain))
	})
	return all
}

// DrainOf is the Drain that takes requests away from the endpoint of the service.
func (s *Service) DrainOf(shard ShardKey, e *Endpoint) (ServiceDrain, bool) {
	return drainAmong(s.Drains, ShardEndpoints{Shard: shard}, e, ServiceDrain.takes)
}

func drainAmong(drains []ServiceDrain, group ShardEndpoints, e *Endpoint, counts func(ServiceDrain) bool) (ServiceDrain, bool) {
	i := slices.IndexFunc(drains, func(d ServiceDrain) bool { return counts(d) && d.Spec.covers(group, e) })
	if i < 0 {
		return ServiceDrain{}, false
	}
	return drains[i], true
}

// drain has drains take requests away from endpoints of the service, where what is left
// suffices.
func (s *Service) drain(drains []ServiceDrain) {
	if len(drains) == 0 {
		return
	}
	s.Drains = s.covering(drains)
	if !slices.ContainsFunc(s.Drains, ServiceDrain.takes) {
		return
	}
	s.Undrained, s.Endpoints = s.Endpoints, slices.Clone(s.Endpoints)
	scale := s.scaleOf()
	for i, group := range s.Endpoints {
		s.Endpoints[i].Endpoints = slices.Clone(group.Endpoints)
		for j := range group.Endpoints {
			d, drained := s.DrainOf(group.Shard, &group.Endpoints[j])
			scale.apply(&s.Endpoints[i].Endpoints[j], d, drained)
		}
	}
}

// covering are the drains that cover an endpoint of the service and no stronger one does,
// with the reason why it is not drained.
func (s *Service) covering(drains []ServiceDrain) []ServiceDrain {
	left, all := 0, 0
	covering := map[ObjectKey]bool{}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			d, covered := drainAmong(drains, group, e, func(ServiceDrain) bool { return true })
			covering[d.Drain] = covering[d.Drain] || covered
			if e.Health == Healthy {
				all++
				if !covered {
					left++
				}
			}
		}
	}
	var found []ServiceDrain
	for _, d := range drains {
		if !covering[d.Drain] {
			continue
		}
		d.Refused = d.Spec.refusal(left, all)
		if s.Resolution == Passthrough {
			d.Refused = "callers choose its endpoints themselves"
		}
		found = append(found, d)
	}
	return found
}

// drainScale is how the weights of a service become shares.
type drainScale struct {
	parts bool // some endpoint loses a part of its requests
	shift uint
}

// scaleOf keeps weights within what a weight can be.
func (s *Service) scaleOf() drainScale {
	scale := drainScale{parts: slices.ContainsFunc(s.Drains, func(d ServiceDrain) bool { return d.takes() && d.Share < 100 })}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			for group.Endpoints[i].LoadBalancingWeight()>>scale.shift > math.MaxUint32/100 {
				scale.shift++
			}
		}
	}
	return scale
}

// apply takes the share away from the endpoint. One that loses all takes requests only where
// nothing else is left.
func (x drainScale) apply(e *Endpoint, d ServiceDrain, drained bool) {
	share := uint32(0)
	if drained {
		share = d.Share
	}
	if share == 100 && e.Health == Healthy {
		e.Health = Draining
	}
	if x.parts {
		e.Weight = max(e.LoadBalancingWeight()>>x.shift, 1) * (100 - share%100)
	}
}

// lendable are the endpoints of the service without what drains do: a service that is made
// of them is drained itself.
func (s *Service) lendable() []ShardEndpoints {
	if s.Undrained != nil {
		return s.Undrained
	}
	return s.Endpoints
}
