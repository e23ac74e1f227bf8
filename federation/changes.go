package federation

import (
	"slices"
	"strings"
)

// Reason says what changed; reasons add up. Those of a service are the first
// three.
type Reason uint8

// The reasons of a change.
const (
	ReasonSpec      Reason = 1 << iota // ports, VIPs, resolution, visibility, the set of clusters; or the service is new or gone
	ReasonEndpoints                    // endpoints, refused ones included, or the notes on them
	ReasonAccounts                     // the set of service accounts
	ReasonConfig                       // configuration objects
)

func (r Reason) String() string {
	var names []string
	for bit, name := range map[Reason]string{
		ReasonSpec: "spec", ReasonEndpoints: "endpoints",
		ReasonAccounts: "accounts", ReasonConfig: "config",
	} {
		if r&bit != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// ServiceChange names a service that changed. Gone services have ReasonSpec.
type ServiceChange struct {
	Key     ServiceKey
	Reasons Reason
	Gone    bool
}

// ObjectChange names a configuration object that changed.
type ObjectChange struct {
	Key  ObjectKey
	Gone bool
}

// ChangeSet says what differs between two versions; each thing is named once,
// whatever happened to it in between. With All the reader is too far behind (or
// never read) and must read everything again; the lists are empty then.
type ChangeSet struct {
	From, To  uint64
	All       bool
	Services  []ServiceChange
	Clusters  []ClusterID
	Addresses []AddressKey // where endpoints or workloads came, went or changed
	Objects   []ObjectChange
	Networks  []NetworkID
	KeySets   []KeySource
	Problems  []ProblemSubject // with what clusters have other problems
	Settings  bool
	Labels    bool // the set of ProxyLabels
}

// Empty reports whether nothing changed.
func (c ChangeSet) Empty() bool {
	return !c.All && !c.Settings && !c.Labels && len(c.Services) == 0 && len(c.Clusters) == 0 && len(c.Addresses) == 0 &&
		len(c.Objects) == 0 && len(c.Networks) == 0 &&
		len(c.KeySets) == 0 && len(c.Problems) == 0
}

// Reasons are those of everything in the set (seeds 33–41: "full" is any of
// spec, accounts and config, "EDS-only" is endpoints alone). Objects that are
// translated into services and workloads count by what they did to those alone
// (seeds 1.18).
func (c ChangeSet) Reasons() Reason {
	var all Reason
	for _, s := range c.Services {
		all |= s.Reasons
	}
	for _, o := range c.Objects {
		if _, translated := contributors[o.Key.Of()]; !translated {
			all |= ReasonConfig
		}
	}
	if len(c.KeySets) > 0 {
		all |= ReasonConfig
	}
	return all
}

// ChangesSince returns what changed after the version. Its cost is that of the
// changes, not that of the snapshot. Version 0 is that of a reader that never
// read: All.
func (s *Snapshot) ChangesSince(version uint64) ChangeSet {
	c := ChangeSet{From: version, To: s.version}
	if version >= s.version {
		return c
	}
	entries, ok := s.journal.since(version)
	if !ok || version == 0 {
		return ChangeSet{From: version, To: s.version, All: true}
	}
	for len(entries) > 0 {
		kind := entries[0][:1]
		end := slices.IndexFunc(entries, func(e string) bool { return e[:1] != kind })
		if end < 0 {
			end = len(entries)
		}
		c.name(s, entryKind(kind), entries[:end])
		entries = entries[end:]
	}
	return c
}

// name takes in the entries of one kind.
func (c *ChangeSet) name(s *Snapshot, kind entryKind, entries []string) {
	switch kind {
	case serviceEntry:
		c.Services = listed(entries, func(key string) ServiceChange { return changeOf(s, key, c.From) })
	case clusterEntry:
		c.Clusters = listed(entries, func(key string) ClusterID { return ClusterID(key) })
	case addressEntry:
		c.Addresses = listed(entries, addressKeyOf)
	case objectEntry:
		c.Objects = listed(entries, func(key string) ObjectChange {
			_, stays := s.objects.byKey.Get(key)
			of, _ := ParseObjectKey(key) // of an object that was in a snapshot
			return ObjectChange{Key: of, Gone: !stays}
		})
	case networkEntry:
		c.Networks = listed(entries, func(key string) NetworkID { return NetworkID(key) })
	case keySetEntry:
		c.KeySets = listed(entries, keySourceOf)
	case problemEntry:
		c.Problems = listed(entries, problemSubjectOf)
	case settingEntry:
		c.Settings = true
	case labelsEntry:
		c.Labels = true
	}
}

// listed reads the key of each entry. After a large apply many readers have such a list at the
// same time: it has no room to spare (R63).
func listed[T any](entries []string, read func(key string) T) []T {
	all := make([]T, len(entries))
	for i, e := range entries {
		all[i] = read(e[1:])
	}
	return all
}

func changeOf(s *Snapshot, sortKey string, since uint64) ServiceChange {
	c := ServiceChange{Key: serviceKeyOf(sortKey)}
	svc, ok := s.services.byKey.Get(sortKey)
	if !ok {
		c.Reasons, c.Gone = ReasonSpec, true
		return c
	}
	for _, part := range [...]struct {
		reason Reason
		at     uint64
	}{{ReasonSpec, svc.SpecVersion}, {ReasonEndpoints, svc.EndpointsVersion}, {ReasonAccounts, svc.AccountsVersion}} {
		if part.at > since {
			c.Reasons |= part.reason
		}
	}
	return c
}
