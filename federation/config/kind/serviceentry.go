package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.ServiceEntry]{
	kind: federation.ServiceEntryKind,
	names: func(_ Decoded, s *networking.ServiceEntry) []string {
		found := lowerCase(s.GetHosts())
		if s.GetResolution() == networking.ServiceEntry_DYNAMIC_DNS {
			found = append(found, federation.DynamicDNSEntries)
		}
		return found
	},
	translate: func(d Decoded, s *networking.ServiceEntry) Meaning {
		for _, e := range s.GetEndpoints() {
			if e != nil {
				e.Labels = d.Share(e.GetLabels())
			}
		}
		entry, problems := external.Read(external.Entry{Key: d.Key, Created: d.Created, Labels: d.Labels, Spec: s})
		return Meaning{Entry: entry, Problems: problems, WithoutSpec: true}
	},
	contributes: &federation.DeclaresServices,
	check:       validation.ServiceEntry,
	columns:     []Column{{"HOSTS", "spec.hosts"}, {"LOCATION", "spec.location"}, {"RESOLUTION", "spec.resolution"}},
})
