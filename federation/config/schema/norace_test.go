//go:build !race

package schema

const allowance = 1
