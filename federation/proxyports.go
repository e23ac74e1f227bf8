package federation

import "slices"

// The ports at which sidecars listen at every address: for captured connections, whatever the proxy, and what Istio's
// agent has its proxy listen at from the start, for readiness and statistics.
var (
	capturePorts = []uint16{15001, 15006}
	agentPorts   = []uint16{15021, 15090}
)

// TakenBySidecars reports whether sidecars listen at the port of every address themselves, so that there is no
// listener for the port of services there; agent: the sidecars run beside Istio's agent.
func TakenBySidecars(port uint16, agent bool) bool {
	return slices.Contains(capturePorts, port) || agent && slices.Contains(agentPorts, port)
}

// TakenByAgents reports whether the port is one of Istio's agents and their gateways: the administration of Envoy, the debugging
// and the status of the agent, readiness and statistics.
func TakenByAgents(port uint16) bool {
	return slices.Contains([]uint16{15000, 15004, 15020}, port) || slices.Contains(agentPorts, port)
}
