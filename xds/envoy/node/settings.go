package node

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Settings are what those who started a proxy set for it alone: Istio's agent sends it in the metadata
// (ADR 229). They are about the proxy's own requests only.
type Settings struct {
	Topology Topology // of gateways
	HTTP     HTTPSettings
	Sampling float64 // the share of traced requests in per cent; 0: it is not set
}

// Topology is what is in front of a gateway.
type Topology struct {
	// TrustedProxies append the address of their caller to x-forwarded-for; that many are trusted.
	TrustedProxies uint32
	// ClientCertificate says how x-forwarded-client-cert is handled, by Envoy's name; empty: by default.
	ClientCertificate string
	// ProxyProtocol: every connection begins with a header of the PROXY protocol.
	ProxyProtocol bool
}

// HTTPSettings are about all requests through the proxy.
type HTTPSettings struct {
	HTTP10         bool // HTTP/1.0 is accepted
	NoRequestID    bool // the proxy adds no x-request-id
	NoDebugHeaders bool // the proxy adds no headers of Envoy, such as x-envoy-upstream-service-time
}

// maxIgnored is how much of a list of ignored settings is kept.
const maxIgnored = 512

// settingsReader reads settings. What it cannot read has no effect, and the proxy is served: with istiod the
// same text started it.
type settingsReader struct {
	settings Settings
	ignored  []string
}

// readSettings reads the settings of the proxy, and names those that have no effect.
func (p *nodeParser) readSettings() {
	var r settingsReader
	r.settings.HTTP.HTTP10 = p.flag("HTTP10")
	if timeout := p.metadata["IDLE_TIMEOUT"]; !isEmpty(timeout) && timeout.GetStringValue() != "0s" {
		r.ignore("IDLE_TIMEOUT")
	}
	r.fields("PROXY_CONFIG", p.metadata["PROXY_CONFIG"], func(at, name string, value *structpb.Value) {
		switch name {
		case "gatewayTopology":
			r.fields(at, value, r.topology)
		case "tracing":
			r.fields(at, value, r.tracing)
		case "proxyHeaders":
			r.fields(at, value, r.headers)
		case "connectionSettings", "privateKeyProvider", "envoyAccessLogService":
			r.ignore(at)
		}
	})
	p.node.Settings, p.node.Ignored = r.settings, strings.Join(r.ignored, ", ")
}

// flag reads a metadata value that is true or anything else.
func (p *nodeParser) flag(key string) bool { return isTrue(p.metadata[key]) }

// fields calls the function for each field that is set, in order.
func (r *settingsReader) fields(at string, value *structpb.Value, read func(at, name string, value *structpb.Value)) {
	if isEmpty(value) {
		return
	}
	if value.GetStructValue() == nil {
		r.ignore(at)
		return
	}
	fields := value.GetStructValue().GetFields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !isNull(fields[name]) {
			read(at+"."+name, name, fields[name])
		}
	}
}

// ignore notes a setting without effect. The names are those that a caller wrote.
func (r *settingsReader) ignore(at string) {
	size := 0
	for _, known := range r.ignored {
		size += len(known)
	}
	at = strings.Map(printed, strings.ToValidUTF8(at, "?"))
	if size+len(at) <= maxIgnored {
		r.ignored = append(r.ignored, at)
	}
}

func printed(c rune) rune {
	if strconv.IsPrint(c) {
		return c
	}
	return '?'
}

func (r *settingsReader) topology(at, name string, value *structpb.Value) {
	switch t := &r.settings.Topology; name {
	case "numTrustedProxies":
		count, ok := number(value)
		if !ok || count < 0 || count > math.MaxUint32 || count != math.Trunc(count) {
			r.ignore(at)
			return
		}
		t.TrustedProxies = uint32(count)
	case "forwardClientCertDetails":
		how := value.GetStringValue()
		if _, known := hcmv3.HttpConnectionManager_ForwardClientCertDetails_value[how]; known {
			t.ClientCertificate = how
		} else if how != "UNDEFINED" {
			r.ignore(at)
		}
	case "proxyProtocol":
		t.ProxyProtocol = value.GetStructValue() != nil
		if !t.ProxyProtocol {
			r.ignore(at)
		}
	default:
		r.ignore(at)
	}
}

func (r *settingsReader) tracing(at, name string, value *structpb.Value) {
	share, ok := number(value)
	switch {
	case name != "sampling" && isEmpty(value):
	case name != "sampling" || !ok || share < 0 || share > 100:
		r.ignore(at)
	default:
		r.settings.Sampling = share
	}
}

// headers are those that the proxy adds. The hub's proxies write neither their name nor the count of attempts.
func (r *settingsReader) headers(at, name string, value *structpb.Value) {
	disabled := isTrue(value.GetStructValue().GetFields()["disabled"])
	switch h := &r.settings.HTTP; {
	case value.GetStructValue() == nil:
		r.ignore(at)
	case name == "requestId":
		h.NoRequestID = disabled
	case name == "envoyDebugHeaders":
		h.NoDebugHeaders = disabled
	case disabled && (name == "server" || name == "attemptCount"), isEmpty(value):
	default:
		r.ignore(at)
	}
}

// number reads a number, also one that is text, as JSON of protocol buffers allows.
func number(value *structpb.Value) (float64, bool) {
	if text, is := value.GetKind().(*structpb.Value_StringValue); is {
		n, err := strconv.ParseFloat(text.StringValue, 64)
		return n, err == nil && !math.IsNaN(n)
	}
	n, is := value.GetKind().(*structpb.Value_NumberValue)
	if !is {
		return 0, false
	}
	return n.NumberValue, !math.IsNaN(n.NumberValue)
}

// isTrue reads what is true as JSON, or in a variable of an agent's container.
func isTrue(value *structpb.Value) bool {
	switch v := value.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return v.BoolValue
	case *structpb.Value_NumberValue:
		return v.NumberValue == 1
	case *structpb.Value_StringValue:
		is, err := strconv.ParseBool(v.StringValue)
		return err == nil && is
	}
	return false
}

func isNull(value *structpb.Value) bool {
	_, null := value.GetKind().(*structpb.Value_NullValue)
	return null || value.GetKind() == nil
}

// isEmpty reports whether a value says nothing.
func isEmpty(value *structpb.Value) bool {
	switch v := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return v.StringValue == ""
	case *structpb.Value_StructValue:
		return len(v.StructValue.GetFields()) == 0
	case *structpb.Value_ListValue:
		return len(v.ListValue.GetValues()) == 0
	}
	return isNull(value)
}

// markSettings notes in facets of listeners how requests through the proxy are handled.
func markSettings(n Node, _ effectiveConfig, facets []Facet) {
	if n.Settings.HTTP == (HTTPSettings{}) {
		return
	}
	for i := range facets {
		if facets[i].Has(logged) { // those that have listeners for requests
			facets[i].edit(func(e *Extras) { e.HTTP = n.Settings.HTTP })
		}
	}
}
