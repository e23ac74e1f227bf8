//go:build tools

// Package echo holds the programs of Istio that the pods of the suite's mesh run, so that go mod tidy keeps what they need.
package echo

import (
	_ "istio.io/istio/pkg/test/echo/cmd/client"
	_ "istio.io/istio/pkg/test/echo/cmd/server"
)
