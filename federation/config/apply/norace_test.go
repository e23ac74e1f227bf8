//go:build !race

package apply_test

const allowance = 1
