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
)

func (r *record) size() int64 {
	n := recordSize + federation.TextSize(r.k.Namespace, r.k.Name, r.version)
	for _, p := range r.problems {
		n += problemSize + federation.TextSize(p.Code, p.Object, p.Field, p.Message)
	}
	return n
}

func (s *service) size() int64 {
	n := s.record.size() + serviceSize + federation.LabelsSize(s.shard.Labels) + federation.TextSize(string(s.service.Hostname), s.shard.UID) +
		federation.TextSize(s.shard.ExportTo...)
	for _, p := range s.shard.Ports {
		n += servicePortSize + federation.TextSize(p.Name)
	}
	if s.shard.Selector != nil {
		n += federation.LabelsSize(s.shard.Selector.Labels) + federation.LabelsSize(s.shard.Selector.TargetNames) +
			int64(len(s.shard.Selector.TargetPorts))*addressSize
	}
	return n + int64(len(s.shard.External)+len(s.shard.VIPs))*addressSize
}

func (s *slice) size() int64 {
	n := s.record.size() + sliceSize + federation.TextSize(s.service)
	for _, p := range s.ports {
		n += endpointPortSize + federation.TextSize(p.Name)
	}
	for i := range s.endpoints {
		e := &s.endpoints[i]
		n += endpointSize + endpointPortSize*int64(len(s.ports)) + federation.TextSize(e.hostname, e.podUID, e.node, e.zone)
		if e.pod != "" {
			n += backedSize + 2*federation.TextSize(e.pod)
		}
	}
	return n
}

func (p *pod) size() int64 {
	n := p.record.size() + podSize + federation.LabelsSize(p.labels) + federation.TextSize(p.uid, p.account, p.node) +
		int64(len(p.ips))*addressSize
	for i := range p.probes {
		n += probeSize + federation.TextSize(p.probes[i].Container, p.probes[i].Path, p.probes[i].Service)
	}
	return n
}

func (n *node) size() int64 {
	return n.record.size() + federation.TextSize(n.locality.Region, n.locality.Zone, n.locality.SubZone)
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
