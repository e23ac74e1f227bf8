//go:build tools

// Package istio holds the programs that this module builds for tests, so that go mod
// tidy keeps what they need.
package istio

import (
	_ "istio.io/istio/pilot/cmd/pilot-agent"
	_ "istio.io/istio/pilot/cmd/pilot-discovery"
)
