package settings

import (
	"fmt"
	"slices"
	"strings"
)

// The sources of configuration that the config file may list. The store of the hub always is one.
const (
	sourceMCP  = "MCP"
	sourceFile = "FILE"
	sourceCRD  = "CRD"
)

// Unread is configuration that is named and not read: its source is not one of the hub.
type Unread struct {
	Setting string // that names it
	Source  string
}

// chooseSources decides which sources the hub reads. Without a list these are all that have
// settings. An empty list means servers of configuration, else files, else custom resources.
func (s *Settings) chooseSources(listed []string) error {
	named := map[string]string{} // the setting of each source that has one
	if len(s.MCPServers) > 0 {
		named[sourceMCP] = "mcp.servers"
	}
	if s.ConfigDir != "" {
		named[sourceFile] = "configDir"
	}
	switch {
	case listed == nil:
		return nil
	case len(listed) == 0:
		listed = []string{firstSource(named)}
	}
	if err := checkSources(listed, named); err != nil {
		return err
	}
	for _, source := range []string{sourceMCP, sourceFile} {
		if setting := named[source]; setting != "" && !slices.Contains(listed, source) {
			s.Unread = append(s.Unread, Unread{Setting: setting, Source: source})
		}
	}
	if !slices.Contains(listed, sourceMCP) {
		s.MCPServers = nil
	}
	if !slices.Contains(listed, sourceFile) {
		s.ConfigDir = ""
	}
	s.NoCustomResources = !slices.Contains(listed, sourceCRD)
	return nil
}

func firstSource(named map[string]string) string {
	for _, source := range []string{sourceMCP, sourceFile} {
		if named[source] != "" {
			return source
		}
	}
	return sourceCRD
}

func checkSources(listed []string, named map[string]string) error {
	known := []string{sourceMCP, sourceFile, sourceCRD}
	needs := map[string]string{sourceMCP: "mcp.servers", sourceFile: "configDir"}
	for i, source := range listed {
		switch {
		case !slices.Contains(known, source):
			return fmt.Errorf("sources[%d]: %q is not known; use %s", i, source, strings.Join(known, ", "))
		case slices.Contains(listed[:i], source):
			return fmt.Errorf("sources[%d]: %s is there twice", i, source)
		case needs[source] != "" && named[source] == "":
			return fmt.Errorf("sources[%d]: %s needs %s, which is missing", i, source, needs[source])
		}
	}
	return nil
}
