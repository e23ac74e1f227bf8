//go:build tools

// Package istio holds the program that this module builds for tests, so that go mod
// tidy keeps what it needs.
package istio

import _ "istio.io/istio/pilot/cmd/pilot-agent"
