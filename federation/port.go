package federation

import (
	"cmp"
	"strings"
)

// Protocol is the application protocol of a service port (seeds 1.2).
type Protocol string

// The protocols of the service model. TCP is the default; UDP gets no cluster.
const (
	GRPC        Protocol = "GRPC"
	GRPCWeb     Protocol = "GRPC-Web"
	HTTP        Protocol = "HTTP"
	HTTPS       Protocol = "HTTPS"
	HTTP2       Protocol = "HTTP2"
	TCP         Protocol = "TCP"
	TLS         Protocol = "TLS"
	UDP         Protocol = "UDP"
	Mongo       Protocol = "Mongo"
	Redis       Protocol = "Redis"
	MySQL       Protocol = "MySQL"
	Unsupported Protocol = "UnsupportedProtocol"
)

// PortNumber is the number as that of a port, which is from 1 to 65535.
func PortNumber[N int | int32 | uint32](n N) (number uint16, ok bool) {
	if n < 1 || n > 65535 {
		return 0, false
	}
	return uint16(n), true
}

// ParseProtocol reads a protocol by its usual names, whatever their case. The
// empty name is TCP (seed 3); an unknown name is Unsupported.
func ParseProtocol(name string) Protocol {
	switch strings.ToLower(name) {
	case "", "tcp":
		return TCP
	case "udp":
		return UDP
	case "grpc":
		return GRPC
	case "grpc-web":
		return GRPCWeb
	case "http", "http1", "http/1.1", "kubernetes.io/ws":
		return HTTP
	case "http2", "h2c", "kubernetes.io/h2c":
		return HTTP2
	case "https", "kubernetes.io/wss":
		return HTTPS
	case "tls":
		return TLS
	case "mongo":
		return Mongo
	case "redis":
		return Redis
	case "mysql":
		return MySQL
	}
	return Unsupported
}

// IsHTTP reports whether requests of this protocol can be routed one by one.
func (p Protocol) IsHTTP() bool {
	return p == HTTP || p == HTTP2 || p == GRPC || p == GRPCWeb
}

// IsHTTP2 reports whether the protocol needs HTTP/2 towards its endpoints.
func (p Protocol) IsHTTP2() bool { return p == HTTP2 || p == GRPC || p == GRPCWeb }

// Transport is what a port number is counted in.
type Transport string

// The two transports of the service model.
const (
	TransportTCP Transport = "TCP"
	TransportUDP Transport = "UDP"
)

// Transport is UDP for UDP and TCP for everything else.
func (p Protocol) Transport() Transport {
	if p == UDP {
		return TransportUDP
	}
	return TransportTCP
}

// Port is a port of a service as one registry declares it. Number is what
// clients use; endpoints may listen elsewhere (EndpointPort). Name may be empty
// only where the service has one port (seed 4).
type Port struct {
	Name     string   `json:"name,omitempty"`
	Number   uint16   `json:"number"`
	Protocol Protocol `json:"protocol"`
	// Undeclared reports that nothing says what the port speaks: it counts as TCP, and
	// proxies may detect HTTP.
	Undeclared bool `json:"undeclared,omitempty"`
	// Target is the port of the address that callers dialed to which connections go
	// (Passthrough); 0: the port that they dialed. Of other services, endpoints say it.
	Target uint16 `json:"target,omitempty"`
}

func comparePorts(a, b Port) int {
	return cmp.Or(
		cmp.Compare(a.Protocol.Transport(), b.Protocol.Transport()),
		cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol))
}

// PortDeclaration is how one registry declares a merged port.
type PortDeclaration struct {
	Shard    ShardKey
	Name     string
	Protocol Protocol
}

// ServicePort is a port of a merged service: the union over the registries by
// transport and number. Name, Protocol, Undeclared and Target are decided by precedence. Traffic to
// the port goes only to clusters in Declared.
type ServicePort struct {
	Name       string
	Number     uint16
	Protocol   Protocol
	Undeclared bool              // as of Port, for the registry that decides about Protocol
	Target     uint16            // the same
	Declared   []PortDeclaration // in order of precedence
}

// DeclaredBy returns the name that the shard gives the port; an endpoint of
// that shard serves the port under this name.
func (p ServicePort) DeclaredBy(shard ShardKey) (name string, ok bool) {
	for _, d := range p.Declared {
		if d.Shard == shard {
			return d.Name, true
		}
	}
	return "", false
}
