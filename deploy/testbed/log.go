package testbed

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a failed test prints of each log: little, so that what failed stays in sight.
const (
	tailLines = 8
	lineBytes = 200
)

// A processLog is the file that a process writes to, over all its runs.
type processLog struct {
	t    testing.TB
	name string
	file *os.File
}

// openLog ends the test on failure. The file belongs to the user of the
// process, so that the process may open it again as /dev/stdout.
func openLog(t testing.TB, options ProgramOptions) *processLog {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), options.Name+".log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatalf("opening the log of %s: %v", options.Name, err)
	}
	if options.UID != 0 {
		if err := file.Chown(options.UID, options.UID); err != nil {
			t.Fatalf("opening the log of %s: %v; running as another user needs root", options.Name, err)
		}
	}
	return &processLog{t: t, name: options.Name, file: file}
}

func (l *processLog) bytes() []byte {
	text, err := os.ReadFile(l.file.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// close keeps the log if the test failed.
func (l *processLog) close() {
	l.file.Close()
	if l.t.Failed() {
		keepLog(l.t, l.name, l.bytes())
	}
}

// keepLog copies a log to the folder that ISTHMUS_TEST_LOGS names, by default
// isthmus-test-logs in the folder for temporary files, and prints its end.
func keepLog(t testing.TB, name string, text []byte) {
	base := os.Getenv("ISTHMUS_TEST_LOGS")
	if base == "" {
		base = filepath.Join(os.TempDir(), "isthmus-test-logs")
	}
	dir := filepath.Join(base, strings.ReplaceAll(t.Name(), "/", "_"))
	path := filepath.Join(dir, name+".log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Logf("keeping the log of %s: %v", name, err)
		return
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Logf("keeping the log of %s: %v", name, err)
		return
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	for i, line := range lines {
		lines[i] = line[:min(len(line), lineBytes)]
	}
	t.Logf("the log of %s is kept in %s and ends with:\n%s", name, path, bytes.Join(lines, []byte("\n")))
}
