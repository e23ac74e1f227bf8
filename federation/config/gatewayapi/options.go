package gatewayapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// Options of TLS that Istio has, and so the hub.
const (
	optionMode   = "gateway.istio.io/tls-terminate-mode"
	optionSuites = "gateway.istio.io/tls-cipher-suites"
)

// modeOfMesh has clients prove an identity of the mesh.
const modeOfMesh = "ISTIO_MUTUAL"

// readOptions reads the options of a listener. One that cannot be kept and says which clients may connect is a
// fault: they are never let in because of that.
func (l *listener) readOptions() {
	if l.TLS == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(l.TLS.Options)) {
		field, value := fmt.Sprintf("%s.tls.options[%s]", l.field, key), string(l.TLS.Options[key])
		ends := l.Protocol == gateway.HTTPSProtocolType || l.Protocol == gateway.TLSProtocolType && !l.passes()
		switch {
		case string(key) != optionMode && string(key) != optionSuites:
			l.notes.unsupported(field, kind.NoTLSOptions)
		case !ends:
			l.notes.unsupported(field, "the listener does not end TLS")
		case string(key) == optionSuites:
			for suite := range strings.SplitSeq(value, ",") {
				l.suites = append(l.suites, strings.TrimSpace(suite))
			}
		case value == "MUTUAL" || value == "OPTIONAL_MUTUAL" || value == modeOfMesh:
			l.mode = value
		case value != "SIMPLE":
			l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedValue), field,
				"the mode %s is not supported; nothing listens: use SIMPLE, MUTUAL, OPTIONAL_MUTUAL or ISTIO_MUTUAL", federation.Quote(value))
		}
	}
}

// asOptionsSay is what TLS of a server is with the options.
func (l *listener) asOptionsSay(tls object) object {
	if l.mode != "" {
		tls["mode"] = l.mode
		delete(tls, "insecureSkipVerify") // the mode says how clients are verified
	}
	if len(l.suites) > 0 {
		tls["cipherSuites"] = l.suites
	}
	return tls
}
