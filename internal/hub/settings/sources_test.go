package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// resolved are the settings of a config file with the lines.
func resolved(t *testing.T, lines string) (Settings, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return Resolve(Flags{Dev: true, DataDir: t.TempDir(), Config: file})
}

// TestU23Seeds27And28EmptySourcesMeanServersElseFilesElseCustomResources: an empty list reads one source, a list what it has,
// and a file without a list what it always did. What is named and not read is reported.
func TestU23Seeds27And28EmptySourcesMeanServersElseFilesElseCustomResources(t *testing.T) {
	const servers, files = "mcp: {servers: [{name: east, address: 127.0.0.1:15010}]}\n", "configDir: /etc/isthmus/mesh\n"
	for lines, want := range map[string]string{
		servers + files:                   "MCP FILE CRD []",
		files:                             "FILE CRD []",
		"{}\n":                            "CRD []",
		"sources:\n" + servers + files:    "MCP FILE CRD []",
		"sources: []\n" + servers + files: "MCP [configDir]",
		"sources: []\n" + files:           "FILE []",
		"sources: []\n":                   "CRD []",
		"sources: [FILE, CRD]\n" + servers + files:      "FILE CRD [mcp.servers]",
		"sources: [CRD]\n" + servers + files:            "CRD [mcp.servers configDir]",
		"sources: [CRD, FILE, MCP]\n" + servers + files: "MCP FILE CRD []",
		"sources: [MCP, MCP]\n" + servers:               "sources[1]: MCP is there twice",
		"sources: [mcp]\n" + servers:                    `sources[0]: "mcp" is not known`,
		"sources: [MCP]\n":                              "isthmus.yaml: sources[0]: MCP needs mcp.servers",
		"sources: [CRD, FILE]\n":                        "sources[1]: FILE needs configDir",
	} {
		s, err := resolved(t, lines)
		var read, unread []string
		if len(s.Sources.Servers) > 0 {
			read = append(read, "MCP")
		}
		if s.Sources.Dir != "" {
			read = append(read, "FILE")
		}
		if !s.Sources.NoCustomResources {
			read = append(read, "CRD")
		}
		for _, u := range s.Unread {
			unread = append(unread, u.Setting)
		}
		got := fmt.Sprint(strings.Join(read, " "), " ", unread)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", lines, got, want)
		}
	}
}
