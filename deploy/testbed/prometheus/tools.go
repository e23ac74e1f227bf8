//go:build tools

// Package prometheus holds the program that this module builds for tests, so that go mod
// tidy keeps what it needs.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/promtool"
