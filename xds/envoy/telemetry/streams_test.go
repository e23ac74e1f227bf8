package telemetry

import (
	"testing"

	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/types/known/structpb"
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

// TestG119EmptyLabelsAreJSON: empty labels are Istio's default JSON, and others are written as they are.
func TestG119EmptyLabelsAreJSON(t *testing.T) {
	for name, c := range map[string]struct {
		labels *structpb.Struct
		fields int
		status string
	}{
		"empty": {&structpb.Struct{}, 24, "%RESPONSE_CODE%"},
		"own":   {textFields(map[string]string{"response_code": "%RESPONSE_CODE% %PROTOCOL%"}), 1, "%RESPONSE_CODE% %PROTOCOL%"},
	} {
		log := labelled(t, c.labels)
		config := &streamv3.StdoutAccessLog{}
		if err := log.http.GetTypedConfig().UnmarshalTo(config); err != nil {
			t.Fatal(err)
		}
		got := config.GetLogFormat().GetJsonFormat().GetFields()
		if len(got) != c.fields || got["response_code"].GetStringValue() != c.status {
			t.Errorf("%s: the format is %v", name, config.GetLogFormat())
		}
	}
}

func labelled(t *testing.T, labels *structpb.Struct) logger {
	t.Helper()
	log, err := toFile(&mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{
		LogFormat: &mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat{
			LogFormat: &mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat_Labels{Labels: labels},
		},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return log
}
