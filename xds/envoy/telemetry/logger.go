package telemetry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	otlpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	withoutqueryv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/req_without_query/v3"
	otlp "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/extension"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// logger is how requests and connections are logged; nil: they are not.
type logger struct {
	http, tcp *accesslogv3.AccessLog
}

// defaultFormat is that of Istio's documentation.
const defaultFormat = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
	`%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% ` +
	`%DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" ` +
	`"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% ` +
	`%DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%` + "\n"

// defaultLabels are Istio's format of logs in JSON.
var defaultLabels = textFields(map[string]string{
	"start_time": "%START_TIME%", "route_name": "%ROUTE_NAME%", "method": "%REQ(:METHOD)%", "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
	"protocol": "%PROTOCOL%", "response_code": "%RESPONSE_CODE%", "response_flags": "%RESPONSE_FLAGS%",
	"response_code_details": "%RESPONSE_CODE_DETAILS%", "connection_termination_details": "%CONNECTION_TERMINATION_DETAILS%",
	"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%", "bytes_received": "%BYTES_RECEIVED%",
	"bytes_sent": "%BYTES_SENT%", "duration": "%DURATION%", "upstream_service_time": "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
	"x_forwarded_for": "%REQ(X-FORWARDED-FOR)%", "user_agent": "%REQ(USER-AGENT)%", "request_id": "%REQ(X-REQUEST-ID)%",
	"authority": "%REQ(:AUTHORITY)%", "upstream_host": "%UPSTREAM_HOST%", "upstream_cluster": "%UPSTREAM_CLUSTER_RAW%",
	"upstream_local_address": "%UPSTREAM_LOCAL_ADDRESS%", "downstream_local_address": "%DOWNSTREAM_LOCAL_ADDRESS%",
	"downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%", "requested_server_name": "%REQUESTED_SERVER_NAME%",
})

func textFields(texts map[string]string) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, text := range texts {
		s.Fields[name] = structpb.NewStringValue(text)
	}
	return s
}

const (
	standardOutput = "/dev/stdout"
	standardError  = "/dev/stderr"
)

// loggerOf is that of the provider, for what the expression selects; the empty one selects all.
func loggerOf(v *facet.View, name, expression string) (logger, error) {
	if _, own := v.Reader.Mesh().ExtensionProvider(name); !own && name == federation.EnvoyProvider {
		return toFile(&mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{}, expression)
	}
	p, err := extension.Named(v, name)
	if err != nil {
		return logger{}, err
	}
	var l logger
	switch {
	case p.GetEnvoyFileAccessLog() != nil:
		l, err = toFile(p.GetEnvoyFileAccessLog(), expression)
	case p.GetEnvoyHttpAls() != nil:
		als := p.GetEnvoyHttpAls()
		var c *alsv3.CommonGrpcAccessLogConfig
		c, err = serverLog(v, als, orDefault(als.GetLogName(), "http_envoy_accesslog"), als.GetFilterStateObjectsToLog())
		l.http = entry("envoy.access_loggers.http_grpc", &alsv3.HttpGrpcAccessLogConfig{
			CommonConfig: c, AdditionalRequestHeadersToLog: als.GetAdditionalRequestHeadersToLog(),
			AdditionalResponseHeadersToLog:  als.GetAdditionalResponseHeadersToLog(),
			AdditionalResponseTrailersToLog: als.GetAdditionalResponseTrailersToLog(),
		}, expression)
	case p.GetEnvoyTcpAls() != nil:
		als := p.GetEnvoyTcpAls()
		var c *alsv3.CommonGrpcAccessLogConfig
		c, err = serverLog(v, als, orDefault(als.GetLogName(), "tcp_envoy_accesslog"), als.GetFilterStateObjectsToLog())
		l.tcp = entry("envoy.access_loggers.tcp_grpc", &alsv3.TcpGrpcAccessLogConfig{CommonConfig: c}, expression)
	case p.GetEnvoyOtelAls() != nil:
		l, err = toOTLP(v, p.GetEnvoyOtelAls(), expression)
	default:
		err = errors.New("it does not log: use envoyFileAccessLog, envoyHttpAls, envoyTcpAls or envoyOtelAls")
	}
	if err != nil {
		return logger{}, fmt.Errorf("the provider %q of MeshSettings cannot be used: %w", name, err)
	}
	return l, nil
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// entry is a log for what the expression selects.
func entry(name string, config proto.Message, expression string) *accesslogv3.AccessLog {
	l := &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: resource.Any(config)}}
	if expression != "" {
		l.Filter = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name:       "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: resource.Any(&celv3.ExpressionFilter{Expression: expression})},
		}}}
	}
	return l
}

// unmatched are the logs of connections that no chain of a listener takes, such as plain text
// where a workload takes mutual TLS only. They come to what listens at a port.
func unmatched(logs []logger) []*accesslogv3.AccessLog {
	var all []*accesslogv3.AccessLog
	for _, log := range logs {
		if log.tcp == nil {
			continue
		}
		l := proto.CloneOf(log.tcp)
		refused := &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
			ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"NR"}},
		}}
		if l.GetFilter() != nil {
			refused = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
				AndFilter: &accesslogv3.AndFilter{Filters: []*accesslogv3.AccessLogFilter{refused, l.GetFilter()}},
			}}
		}
		l.Filter = refused
		all = append(all, l)
	}
	return all
}

// located is a server of Envoy's access log service.
type located interface {
	GetService() string
	GetPort() uint32
}

func serverLog(v *facet.View, p located, name string, state []string) (*alsv3.CommonGrpcAccessLogConfig, error) {
	at, err := extension.ServerOf(v, p)
	if err != nil {
		return nil, err
	}
	return &alsv3.CommonGrpcAccessLogConfig{
		LogName: name, TransportApiVersion: corev3.ApiVersion_V3, FilterStateObjectsToLog: state, GrpcService: grpcTo(at),
	}, nil
}

func grpcTo(at extension.Server) *corev3.GrpcService {
	return &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: at.Cluster, Authority: at.Host}},
	}
}

// toFile logs to a file or a stream of the proxy.
func toFile(p *mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider, expression string) (logger, error) {
	format := &corev3.SubstitutionFormatString{OmitEmptyValues: p.GetOmitEmptyValues()}
	switch text, labels := p.GetLogFormat().GetText(), p.GetLogFormat().GetLabels(); {
	case labels != nil:
		if len(labels.GetFields()) == 0 {
			labels = defaultLabels
		}
		if err := checkLabels("logFormat.labels", structpb.NewStructValue(labels)); err != nil {
			return logger{}, err
		}
		format.Format = &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: labels}
	default:
		text = orDefault(text, defaultFormat)
		if err := checkLog(text); err != nil {
			return logger{}, fmt.Errorf("logFormat.text: %w", err)
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		format.Format = &corev3.SubstitutionFormatString_TextFormatSource{
			TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}},
		}
	}
	format.Formatters = formatters(format.GetTextFormatSource().GetInlineString(), protojson.Format(format.GetJsonFormat()))
	l := entryAt(orDefault(p.GetPath(), standardOutput), format, expression)
	return logger{http: l, tcp: l}, nil
}

// toOTLP logs to a server of OTLP. The text is the body of a record, and the labels are its attributes.
func toOTLP(v *facet.View, p *mesh.MeshConfig_ExtensionProvider_EnvoyOpenTelemetryLogProvider, expression string) (logger, error) {
	common, err := serverLog(v, p, orDefault(p.GetLogName(), "otel_envoy_accesslog"), nil)
	if err != nil {
		return logger{}, err
	}
	text := strings.TrimSuffix(orDefault(p.GetLogFormat().GetText(), defaultFormat), "\n")
	if err := checkLog(text); err != nil {
		return logger{}, fmt.Errorf("logFormat.text: %w", err)
	}
	config := &otlpv3.OpenTelemetryAccessLogConfig{CommonConfig: common, DisableBuiltinLabels: true, Body: otlpText(text)}
	labels := p.GetLogFormat().GetLabels()
	if labels != nil {
		if err := checkLabels("logFormat.labels", structpb.NewStructValue(labels)); err != nil {
			return logger{}, err
		}
		config.Attributes = &otlp.KeyValueList{}
		for _, name := range slices.Sorted(maps.Keys(labels.GetFields())) {
			value := otlpText(labels.GetFields()[name].GetStringValue())
			config.Attributes.Values = append(config.Attributes.GetValues(), &otlp.KeyValue{Key: name, Value: value})
		}
	}
	config.Formatters = formatters(text, protojson.Format(labels))
	l := entry("envoy.access_loggers.open_telemetry", config, expression)
	return logger{http: l, tcp: l}, nil
}

func otlpText(text string) *otlp.AnyValue {
	return &otlp.AnyValue{Value: &otlp.AnyValue_StringValue{StringValue: text}}
}

// entryAt writes to the proxy's own streams as they are: a proxy that another user started may not
// open them again by their names, and would refuse every listener that wants it to.
func entryAt(path string, format *corev3.SubstitutionFormatString, expression string) *accesslogv3.AccessLog {
	switch path {
	case standardOutput:
		return entry("envoy.access_loggers.stdout", &streamv3.StdoutAccessLog{
			AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: format},
		}, expression)
	case standardError:
		return entry("envoy.access_loggers.stderr", &streamv3.StderrAccessLog{
			AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: format},
		}, expression)
	}
	return entry("envoy.access_loggers.file", &filev3.FileAccessLog{
		Path: path, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: format},
	}, expression)
}

// checkLabels looks for what Envoy would refuse in a format that is an object.
func checkLabels(at string, value *structpb.Value) error {
	switch v := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		if err := checkLog(v.StringValue); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	case *structpb.Value_StructValue:
		for name, inner := range v.StructValue.GetFields() {
			if err := checkLabels(at+"."+name, inner); err != nil {
				return err
			}
		}
	case *structpb.Value_ListValue:
		for i, inner := range v.ListValue.GetValues() {
			if err := checkLabels(fmt.Sprintf("%s[%d]", at, i), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckFormat reports a format that Envoy would refuse.
func CheckFormat(text string) error { return resource.CheckFormat(text, CheckExpression) }

// Envoy has this operator in logs only, where they name the extension.
const withoutQuery = "%REQ_WITHOUT_QUERY("

// checkLog reports the format of a log that Envoy would refuse.
func checkLog(text string) error { return CheckFormat(strings.ReplaceAll(text, withoutQuery, "%REQ(")) }

// formatters are the extensions that the operators of the formats need.
func formatters(formats ...string) []*corev3.TypedExtensionConfig {
	if !slices.ContainsFunc(formats, func(f string) bool { return strings.Contains(f, withoutQuery) }) {
		return nil
	}
	return []*corev3.TypedExtensionConfig{{
		Name: "envoy.formatter.req_without_query", TypedConfig: resource.Any(&withoutqueryv3.ReqWithoutQuery{}),
	}}
}
