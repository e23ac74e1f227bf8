//go:build !race

package memory

// raceDetector tells whether the test was built with it.
const raceDetector = false
