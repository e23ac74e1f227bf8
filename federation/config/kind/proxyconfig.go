package kind

import (
	networking "istio.io/api/networking/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.ProxyConfig]{
	kind:        federation.ProxyConfigKind,
	proxyLabels: selector[*networking.ProxyConfig],
	check:       validation.ProxyConfig,
})
