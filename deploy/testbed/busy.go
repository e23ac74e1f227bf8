package testbed

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// busySoFar is how long, since the machine started, some program waited for a processor
// because others had it, or all because another machine had it. A kernel that does not tell
// counts as one that never waits.
func busySoFar() time.Duration {
	pressure, _ := os.ReadFile("/proc/pressure/cpu")
	stat, _ := os.ReadFile("/proc/stat")
	return waitedIn(pressure) + stolenIn(stat)/time.Duration(runtime.NumCPU())
}

// waitedIn reads /proc/pressure/cpu: "some avg10=1.00 avg60=1.00 avg300=1.00 total=MICROSECONDS".
func waitedIn(pressure []byte) time.Duration {
	first, _, _ := bytes.Cut(pressure, []byte("\n"))
	_, total, _ := bytes.Cut(first, []byte("total="))
	var micros int64
	_, _ = fmt.Sscan(string(total), &micros) // what is not a number is 0
	return time.Duration(micros) * time.Microsecond
}

// stolenIn reads /proc/stat: what other machines took of all processors is the eighth number of
// its first line.
func stolenIn(stat []byte) time.Duration {
	lines := bufio.NewScanner(bytes.NewReader(stat))
	lines.Scan()
	fields := strings.Fields(lines.Text())
	var ticks int64
	if len(fields) > 8 {
		_, _ = fmt.Sscan(fields[8], &ticks)
	}
	return time.Duration(ticks) * tick
}
