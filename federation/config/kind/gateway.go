package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.Gateway]{
	kind:        federation.GatewayKind,
	proxyLabels: func(s *networking.Gateway, add func(map[string]string)) { add(s.GetSelector()) },
	check:       validation.Gateway,
	objectName:  validation.GatewayName,
	columns:     []Column{{"HOSTS", "spec.servers[].hosts"}},
})
