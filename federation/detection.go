package federation

import (
	"slices"
	"time"
)

// serverFirst are the well-known ports of protocols in which the server speaks first.
var serverFirst = []uint16{25, 53, 3306, 27017} // SMTP, DNS, MySQL, MongoDB

// MayDetect reports whether proxies may detect what an undeclared port of that number
// speaks: detection waits for the client, which would wait for the server.
func MayDetect(number uint16) bool { return !slices.Contains(serverFirst, number) }

// DefaultDetectionTimeout is how long proxies wait for the first bytes of a connection.
const DefaultDetectionTimeout = time.Second

// DetectsOutbound reports whether callers detect HTTP on undeclared ports.
func (m *MeshSettings) DetectsOutbound() bool {
	return m == nil || m.ProtocolDetection.Outbound == nil || *m.ProtocolDetection.Outbound
}

// DetectsInbound reports whether servers detect HTTP on undeclared ports.
func (m *MeshSettings) DetectsInbound() bool {
	return m == nil || m.ProtocolDetection.Inbound == nil || *m.ProtocolDetection.Inbound
}

// DetectionTimeout is how long proxies wait for the first bytes of a connection; 0: for ever.
func (m *MeshSettings) DetectionTimeout() time.Duration {
	if m == nil || m.ProtocolDetectionTimeout == "" {
		return DefaultDetectionTimeout
	}
	d, err := time.ParseDuration(m.ProtocolDetectionTimeout)
	if err != nil || d < 0 {
		return DefaultDetectionTimeout
	}
	return d
}
