package validation

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"isthmus.dev/isthmus/federation/config/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// isLabel tells a DNS label, in capitals too.
func isLabel(text string) bool {
	if text == "" || len(text) > validation.DNS1123LabelMaxLength || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

func label(text string) string {
	return when(!isLabel(text), "%q is not a DNS label: write letters, digits and hyphens, at most 63", text)
}

// hostname accepts DNS names. The last part of a name is not a number, which
// tells names from IP addresses.
func hostname(name string) string {
	parts := strings.Split(strings.TrimSuffix(name, "."), ".")
	wrong := name == "" || len(name) > 255 || isNumber(parts[len(parts)-1])
	for _, part := range parts {
		wrong = wrong || !isLabel(part)
	}
	return when(wrong, "%q is not a DNS name: write one such as reviews.shop.svc.cluster.local", name)
}

// wildcardHostname accepts DNS names whose first label may begin with *.
func wildcardHostname(name string) string {
	if name == "*" {
		return ""
	}
	rest, wild := strings.CutPrefix(name, "*")
	if wild && strings.HasPrefix(rest, ".") {
		return when(hostname(rest[1:]) != "", "%q is not a DNS name, also without *.: write one such as *.example.com", name)
	}
	return when(hostname(strings.TrimPrefix(rest, "-")) != "",
		"%q is not a DNS name: write one such as reviews.shop.svc.cluster.local or *.example.com", name)
}

func isNumber(text string) bool {
	if text == "" || text[0] > '9' {
		return false // as most: an error costs more than all else
	}
	_, err := strconv.Atoi(text)
	return err == nil
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// virtualHost is a name or an address for which there are routes.
func virtualHost(host string) string {
	if isAddress(host) {
		return ""
	}
	return wildcardHostname(host)
}

// destinationHost is a name to which traffic goes.
func destinationHost(host string) string {
	if host == "*" {
		return "* is not a destination: name one host"
	}
	return wildcardHostname(host)
}

// subnet accepts an IP address or a CIDR block.
func subnet(text string) string {
	_, err := netip.ParsePrefix(text)
	return when(err != nil && !isAddress(text), "%q is neither an IP address nor a CIDR block: write one such as 10.0.0.0/8", text)
}

func port(number uint32) string {
	return when(number < 1 || number > 65535, "%d is not a port: write 1 to 65535", number)
}

// optionalPort accepts 0, which is a port that is not set.
func optionalPort(number uint32) string {
	if number == 0 {
		return ""
	}
	return port(number)
}

func unixSocket(text string) string {
	name := strings.TrimPrefix(text, "unix://")
	return when(!strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") || strings.HasSuffix(name, "/"),
		"%q is not a socket: write unix:// and an absolute path, or unix://@ and a name", text)
}

// protocols are the protocols that a port may have, in capitals.
var protocols = map[string]bool{
	"HTTP": true, "HTTP2": true, "HTTPS": true, "HTTP_PROXY": true, "GRPC": true, "GRPC-WEB": true, "TLS": true, "TCP": true,
	"UDP": true, "MONGO": true, "MYSQL": true, "REDIS": true, "HBONE": true, "DOUBLE-HBONE": true,
}

func protocol(name string) string {
	return when(!protocols[strings.ToUpper(name)],
		"%q is not a protocol: write HTTP, HTTP2, HTTPS, GRPC, GRPC-WEB, TLS, TCP, UDP, MONGO, MYSQL or REDIS", name)
}

func overTLS(protocol string) bool {
	return strings.EqualFold(protocol, "HTTPS") || strings.EqualFold(protocol, "TLS")
}

func inClearHTTP(protocol string) bool {
	switch strings.ToUpper(protocol) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY":
		return true
	}
	return false
}

// regularExpression accepts what RE2 reads.
func regularExpression(text string) string {
	_, err := regexp.Compile(text)
	return when(err != nil, "%.80q is not a regular expression of RE2: %v", text, err)
}

func labels(at path, values map[string]string) []Problem {
	return entries(at, values, func(at path, key, value string) []Problem {
		found := invalid(at, when(len(validation.IsQualifiedName(key)) > 0, "%q is not a label key", key))
		return append(found, invalid(at, when(len(validation.IsValidLabelValue(value)) > 0, "%q is not a label value", value))...)
	})
}

// exportToOfService checks to which namespaces a service is shown; it may be hidden
// from all.
func exportToOfService(namespace string, at path, list []string) []Problem {
	seen := map[string]bool{}
	alone := false
	found := each(at, list, func(at path, name string) []Problem {
		alone = alone || name == "*" || name == "~"
		if name == "." && namespace != "" {
			name = namespace
		}
		again := seen[name]
		seen[name] = true
		if name == "*" || name == "." || name == "~" || isLabel(name) {
			return problem(at, schema.DuplicateValue, when(again, "%q is listed twice: remove one", name))
		}
		return invalid(at, when(true, "%q is not a namespace: write one, or . for the object's own, or * for all", name))
	})
	return append(found, invalid(at, when(alone && len(list) > 1, "* and ~ stand alone: remove the other namespaces"))...)
}

// exportTo checks to which namespaces rules about services are shown.
func exportTo(namespace string, at path, list []string) []Problem {
	return append(exportToOfService(namespace, at, list), texts(at, list, func(name string) string {
		return when(name == "~", "~ is for a ServiceEntry alone: write . for the object's own namespace")
	})...)
}

// gatewayName accepts mesh, NAME and NAMESPACE/NAME.
func gatewayName(name string) string {
	namespace, local, qualified := strings.Cut(name, "/")
	wrong := !qualified && hostname(name) != "" || qualified && (!isLabel(namespace) || !isLabel(local))
	return when(wrong, "%q is not a gateway: write NAME, NAMESPACE/NAME or mesh; both are DNS labels", name)
}

// scopedHost accepts HOST and NAMESPACE/HOST; the namespace may be one of the
// signs.
func scopedHost(text string, signs ...string) string {
	namespace, host, scoped := strings.Cut(text, "/")
	if !scoped {
		return wildcardHostname(text)
	}
	known := isLabel(namespace)
	for _, sign := range signs {
		known = known || namespace == sign
	}
	if !known {
		return when(true, "%q: %q is not a namespace", text, namespace)
	}
	return wildcardHostname(host)
}

// wholeMilliseconds accepts durations that proxies can measure.
func wholeMilliseconds(d *durationpb.Duration) string {
	return when(d.AsDuration()%time.Millisecond != 0, "%s is finer than a millisecond: write whole milliseconds", d.AsDuration())
}

func portText(text string) string {
	number, err := strconv.ParseUint(text, 10, 16)
	return when(err != nil || number == 0, "%q is not a port: write 1 to 65535", text)
}
