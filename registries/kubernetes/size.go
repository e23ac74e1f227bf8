package kubernetes

import "isthmus.dev/isthmus/federation"

// What the hub keeps of an object, in the registry and in the snapshot, in bytes beside
// texts. TestR06TheCountIsWhatTheHubKeeps measures it.
const (
	recordSize       = 160
	problemSize      = 256
	serviceSize      = 2840
	servicePortSize  = 200
	sliceSize        = 290
	endpointSize     = 790
	endpointPortSize = 24
	backedSize       = 280 // more for an endpoint that names its pod
	podSize          = 1070
	probeSize        = 96
	addressSize      = 48
	stringSize       = 8 // by which texts are rounded up
	mapSize          = 48
	slotSize         = 36 // a place of a map of texts
)

func textSize(texts ...string) (n int64) {
	for _, t := range texts {
		n += int64(len(t)) + stringSize
	}
	return n
}

// labelsSize is what labels take: a map has 8 places, or so many that at most seven of
// eight are taken.
func labelsSize(labels map[string]string) int64 {
	if len(labels) == 0 {
		return mapSize
	}
	places := 8
	for len(labels) > 8 && places*7/8 < len(labels) {
		places *= 2
	}
	n := mapSize + slotSize*int64(places)
	for k, v := range labels {
		n += textSize(k, v)
	}
	return n
}

func (r *record) size() int64 {
	n := recordSize + textSize(r.k.Namespace, r.k.Name, r.version)
	for _, p := range r.problems {
		n += problemSize + textSize(p.Code, p.Object, p.Field, p.Message)
	}
	return n
}

func (s *service) size() int64 {
	n := s.record.size() + serviceSize + labelsSize(s.shard.Labels) + textSize(string(s.service.Hostname), s.shard.UID) + textSize(s.shard.ExportTo...)
	for _, p := range s.shard.Ports {
		n += servicePortSize + textSize(p.Name)
	}
	if s.shard.Selector != nil {
		n += labelsSize(s.shard.Selector.Labels) + labelsSize(s.shard.Selector.TargetNames) + int64(len(s.shard.Selector.TargetPorts))*addressSize
	}
	return n + int64(len(s.shard.External)+len(s.shard.VIPs))*addressSize
}

func (s *slice) size() int64 {
	n := s.record.size() + sliceSize + textSize(s.service)
	for _, p := range s.ports {
		n += endpointPortSize + textSize(p.Name)
	}
	for i := range s.endpoints {
		e := &s.endpoints[i]
		n += endpointSize + endpointPortSize*int64(len(s.ports)) + textSize(e.hostname, e.podUID, e.node, e.zone)
		if e.pod != "" {
			n += backedSize + 2*textSize(e.pod)
		}
	}
	return n
}

func (p *pod) size() int64 {
	n := p.record.size() + podSize + labelsSize(p.labels) + textSize(p.uid, p.account, p.node) + int64(len(p.ips))*addressSize
	for i := range p.probes {
		n += probeSize + textSize(p.probes[i].Container, p.probes[i].Path, p.probes[i].Service)
	}
	return n
}

func (n *node) size() int64 {
	return n.record.size() + textSize(n.locality.Region, n.locality.Zone, n.locality.SubZone)
}

// swap counts an object that takes the place of another one; nil is none.
func swap[T any, P interface {
	*T
	object
}](u *federation.Usage, old, now P) {
	if old != nil {
		*u = u.Add(federation.Usage{Objects: -1, Bytes: -old.size()})
	}
	if now != nil {
		*u = u.Add(federation.Usage{Objects: 1, Bytes: now.size()})
	}
}
