//go:build tools

// Package kubectl holds the program that this module builds for tests, so that go mod
// tidy keeps what it needs.
package kubectl

import _ "k8s.io/kubernetes/cmd/kubectl"
