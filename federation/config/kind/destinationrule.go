package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.DestinationRule]{
	kind: federation.Kind{Group: networkingGroup, Name: "DestinationRule"},
	names: func(d Decoded, s *networking.DestinationRule) []string {
		return append(d.hosts(s.GetHost()), exports(s.GetExportTo())...)
	},
	proxyLabels: func(s *networking.DestinationRule, add func(map[string]string)) {
		add(s.GetWorkloadSelector().GetMatchLabels())
	},
	check:      validation.DestinationRule,
	references: func(r *analysis.References, s *networking.DestinationRule) { r.Host("spec.host", s.GetHost()) },
	columns:    []Column{{"HOST", "spec.host"}},
})

func exports(to []string) []string {
	var out []string
	for _, namespace := range to {
		if namespace != "*" && namespace != "." && namespace != "~" {
			out = append(out, ExportName(namespace))
		}
	}
	return out
}
