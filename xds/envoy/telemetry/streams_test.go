package telemetry

import (
	"testing"

	mesh "istio.io/api/mesh/v1alpha1"
)

// TestU38LogsOfStreamsOpenNoFile: a proxy that runs as another user than the one who started it may
// not open its standard output again.
func TestU38LogsOfStreamsOpenNoFile(t *testing.T) {
	for path, want := range map[string]string{
		"":               "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
		"/dev/stdout":    "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
		"/dev/stderr":    "envoy.extensions.access_loggers.stream.v3.StderrAccessLog",
		"/var/log/a.log": "envoy.extensions.access_loggers.file.v3.FileAccessLog",
	} {
		log, err := toFile(&mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{Path: path}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(log.http.GetTypedConfig().MessageName()); got != want {
			t.Errorf("the log at %q is a %s, want %s", path, got, want)
		}
	}
}
