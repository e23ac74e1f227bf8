package kind

import "isthmus.dev/isthmus/federation"

// Widget is the spec of a kind that only the check list has.
type Widget struct {
	Host string `json:"host"`
}

var _ = add(of[Widget]{
	kind:    federation.Kind{Group: federation.MeshGroup, Name: "Widget"},
	names:   func(d Decoded, s *Widget) []string { return d.hosts(s.Host) },
	columns: []Column{{"HOST", "spec.host"}},
})
