//go:build race

package schema

// allowance is how many times as much a test with the race detector may allocate, which
// drops what pools keep.
const allowance = 15
