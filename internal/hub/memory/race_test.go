//go:build race

package memory

// raceDetector reports whether the test was built with it.
const raceDetector = true
