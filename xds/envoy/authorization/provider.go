package authorization

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	tcpauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/extension"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

const askPrefix = "istio_ext_authz_"

// patience is how long a provider may take, as with Istio.
const patience = 600 * time.Second

// asking is how a provider is asked.
type asking struct {
	http *hcmv3.HttpFilter
	tcp  *listenerv3.Filter // nil: the provider is asked about requests alone
}

// matchedKey is where Envoy notes which of the rules of the provider's policies matched. Several
// providers have keys of their own.
func matchedKey(provider string) string { return askPrefix + provider + "_" }

// onceMatched has a filter look only at what a rule of the provider's policies matched.
func onceMatched(rbac, provider string) *matcherv3.MetadataMatcher {
	return &matcherv3.MetadataMatcher{
		Filter: rbac,
		Path: []*matcherv3.MetadataMatcher_PathSegment{{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: matchedKey(provider) +
			"shadow_effective_policy_id"}}},
		Value: &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: rulePrefix}},
		}},
	}
}

// askingOf is how the provider of that name is asked by the view's proxies.
func askingOf(v *facet.View, name string) (asking, error) {
	p, err := extension.Named(v, name)
	if err != nil {
		return asking{}, err
	}
	var a asking
	switch {
	case p.GetEnvoyExtAuthzHttp() != nil:
		a, err = overHTTP(v, name, p.GetEnvoyExtAuthzHttp())
	case p.GetEnvoyExtAuthzGrpc() != nil:
		a, err = overGRPC(v, name, p.GetEnvoyExtAuthzGrpc())
	default:
		err = errors.New("it does not decide about requests: use envoyExtAuthzHttp or envoyExtAuthzGrpc")
	}
	if err == nil {
		err = check.Part(a.http)
	}
	if err != nil {
		return asking{}, fmt.Errorf("the provider %q of MeshSettings cannot be asked: %w", name, err)
	}
	return a, nil
}

// decider is what both types of providers have.
type decider interface {
	GetService() string
	GetPort() uint32
	GetTimeout() *durationpb.Duration
	GetFailOpen() bool
	GetClearRouteCache() bool
	GetStatusOnError() string
	GetIncludeRequestBodyInCheck() *mesh.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody
}

func filterFor(name string, p decider) (*httpauthzv3.ExtAuthz, error) {
	f := &httpauthzv3.ExtAuthz{
		TransportApiVersion: corev3.ApiVersion_V3, FailureModeAllow: p.GetFailOpen(), ClearRouteCache: p.GetClearRouteCache(),
		FilterEnabledMetadata: onceMatched(resource.RBACFilter, name),
	}
	if text := p.GetStatusOnError(); text != "" {
		code, err := strconv.Atoi(text)
		if _, known := typev3.StatusCode_name[int32(code)]; err != nil || !known || code < http.StatusOK {
			return nil, fmt.Errorf("statusOnError %q is not a status of HTTP", text)
		}
		f.StatusOnError = &typev3.HttpStatus{Code: typev3.StatusCode(code)}
	}
	if body := p.GetIncludeRequestBodyInCheck(); body != nil {
		f.WithRequestBody = &httpauthzv3.BufferSettings{
			MaxRequestBytes: body.GetMaxRequestBytes(), AllowPartialMessage: body.GetAllowPartialMessage(), PackAsBytes: body.GetPackAsBytes(),
		}
	}
	return f, nil
}

func timeout(p decider) *durationpb.Duration {
	if p.GetTimeout() == nil {
		return durationpb.New(patience)
	}
	return p.GetTimeout()
}

func overGRPC(v *facet.View, name string, p *mesh.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider) (asking, error) {
	at, err := extension.ServerOf(v, p)
	if err != nil {
		return asking{}, err
	}
	f, err := filterFor(name, p)
	if err != nil {
		return asking{}, err
	}
	server := &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: at.Cluster, Authority: at.Host}},
		Timeout:         timeout(p),
	}
	f.Services = &httpauthzv3.ExtAuthz_GrpcService{GrpcService: server}
	return asking{http: resource.InHTTP(resource.ProviderFilter, f), tcp: resource.Filter(resource.TCPProviderFilter, &tcpauthzv3.ExtAuthz{
		StatPrefix: tcpPrefix, GrpcService: server, FailureModeAllow: p.GetFailOpen(), TransportApiVersion: corev3.ApiVersion_V3,
		FilterEnabledMetadata: onceMatched(resource.TCPRBACFilter, name),
	})}, nil
}

func overHTTP(v *facet.View, name string, p *mesh.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider) (asking, error) {
	at, err := extension.ServerOf(v, p)
	if err != nil {
		return asking{}, err
	}
	f, err := filterFor(name, p)
	if err != nil {
		return asking{}, err
	}
	if p.GetPathPrefix() != "" && !strings.HasPrefix(p.GetPathPrefix(), "/") {
		return asking{}, fmt.Errorf("pathPrefix %q does not begin with /", p.GetPathPrefix())
	}
	f.Services = &httpauthzv3.ExtAuthz_HttpService{HttpService: &httpauthzv3.HttpService{
		ServerUri: &corev3.HttpUri{
			Uri: fmt.Sprintf("http://%s:%d", at.Host, at.Port), Timeout: timeout(p),
			HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: at.Cluster},
		},
		PathPrefix:           p.GetPathPrefix(),
		AuthorizationRequest: &httpauthzv3.AuthorizationRequest{HeadersToAdd: fixedHeaders(p.GetIncludeAdditionalHeadersInCheck())},
		AuthorizationResponse: &httpauthzv3.AuthorizationResponse{
			AllowedUpstreamHeaders:        headerNames(p.GetHeadersToUpstreamOnAllow()),
			AllowedClientHeaders:          headerNames(p.GetHeadersToDownstreamOnDeny()),
			AllowedClientHeadersOnSuccess: headerNames(p.GetHeadersToDownstreamOnAllow()),
		},
	}}
	f.AllowedHeaders = headerNames(slices.Concat(p.GetIncludeRequestHeadersInCheck(),
		p.GetIncludeHeadersInCheck())) //nolint:staticcheck // deprecated, and in use
	return asking{http: resource.InHTTP(resource.ProviderFilter, f)}, nil
}

// fixedHeaders are added to requests to the provider as they are written: % is not an operator.
func fixedHeaders(headers map[string]string) []*corev3.HeaderValue {
	var all []*corev3.HeaderValue
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		all = append(all, &corev3.HeaderValue{Key: name, Value: strings.ReplaceAll(headers[name], "%", "%%")})
	}
	return all
}

func headerNames(names []string) *matcherv3.ListStringMatcher {
	if len(names) == 0 {
		return nil
	}
	list := &matcherv3.ListStringMatcher{}
	for _, name := range names {
		m := text(name)
		m.IgnoreCase = m.GetSafeRegex() == nil
		list.Patterns = append(list.Patterns, m)
	}
	return list
}
