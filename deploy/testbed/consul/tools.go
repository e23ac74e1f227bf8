//go:build tools

// Package consul holds the program that this module builds for tests, so that
// go mod tidy keeps what it needs.
package consul

import _ "github.com/hashicorp/consul"
