//go:build !race

package manifest

const allowance = 1
