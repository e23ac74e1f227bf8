//go:build !race

package hub

// raceDetector tells whether the test was built with it.
const raceDetector = false
