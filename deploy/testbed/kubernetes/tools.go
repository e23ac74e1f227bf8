//go:build tools

// Package kubernetes holds the programs that this module builds for tests, so
// that go mod tidy keeps what they need.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
