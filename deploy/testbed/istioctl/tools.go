//go:build tools

// Package istioctl holds the program that this module builds for tests, so that go mod
// tidy keeps what it needs.
package istioctl

import _ "istio.io/istio/istioctl/cmd/istioctl"
