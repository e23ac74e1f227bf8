package kubernetes

import "isthmus.dev/isthmus/federation"

// What strings, maps and the structures around them take, roughly.
const (
	recordSize   = 256
	stringSize   = 16
	mapEntrySize = 48
)

func textSize(texts ...string) (n int64) {
	for _, t := range texts {
		n += int64(len(t)) + stringSize
	}
	return n
}

func mapSize(m map[string]string) (n int64) {
	for k, v := range m {
		n += int64(len(k)+len(v)) + mapEntrySize
	}
	return n
}

func (r *record) size() int64 {
	n := recordSize + textSize(r.k.Namespace, r.k.Name, r.version)
	for _, p := range r.problems {
		n += textSize(p.Code, p.Object, p.Field, p.Message)
	}
	return n
}

func (s *service) size() int64 {
	n := s.record.size() + recordSize + mapSize(s.shard.Labels) + textSize(string(s.service.Hostname), s.shard.UID) + textSize(s.shard.ExportTo...)
	for _, p := range s.shard.Ports {
		n += textSize(p.Name) + stringSize
	}
	if s.shard.Selector != nil {
		n += mapSize(s.shard.Selector.Labels) + mapSize(s.shard.Selector.TargetNames) + int64(len(s.shard.Selector.TargetPorts))*mapEntrySize
	}
	return n + int64(len(s.shard.External)+len(s.shard.VIPs))*mapEntrySize
}

func (s *slice) size() int64 {
	n := s.record.size() + textSize(s.service)
	for _, p := range s.ports {
		n += textSize(p.Name) + stringSize
	}
	for i := range s.endpoints {
		e := &s.endpoints[i]
		n += recordSize + textSize(e.hostname, e.pod, e.podUID, e.node, e.zone)
	}
	return n
}

func (p *pod) size() int64 {
	n := p.record.size() + mapSize(p.labels) + textSize(p.uid, p.account, p.node) + int64(len(p.ips))*mapEntrySize
	for i := range p.probes {
		n += 2*recordSize + textSize(p.probes[i].Container, p.probes[i].Path, p.probes[i].Service)
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
