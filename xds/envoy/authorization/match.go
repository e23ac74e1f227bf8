package authorization

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	templatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

var errEmpty = errors.New("it is empty")

// anything matches every text that is there.
func anything() *matcherv3.StringMatcher { return expression(".+") }

func expression(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: text}}}
}

// text matches the value itself, a suffix after *, a prefix before *, or anything.
func text(value string) *matcherv3.StringMatcher {
	if value == "*" {
		return anything()
	}
	if suffix, wild := strings.CutPrefix(value, "*"); wild {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: suffix}}
	}
	if prefix, wild := strings.CutSuffix(value, "*"); wild {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}
}

// ofHeader matches a header by its value; * is any, and also none.
func ofHeader(name, value string) *routev3.HeaderMatcher {
	if value == "*" {
		return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: text(value)}}
}

func headerPermission(h *routev3.HeaderMatcher) *rbacv3.Permission {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_Header{Header: h}}
}

func host(value string) (*rbacv3.Permission, error) {
	h := ofHeader(":authority", value)
	if m := h.GetStringMatch(); m != nil {
		m.IgnoreCase = true
	}
	return headerPermission(h), nil
}

func method(value string) (*rbacv3.Permission, error) {
	return headerPermission(ofHeader(":method", value)), nil
}

func port(value string) (*rbacv3.Permission, error) {
	number, ok := resource.ParsePort(value)
	if !ok {
		return nil, fmt.Errorf("%q is not a port: write 1 to 65535", value)
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationPort{DestinationPort: uint32(number)}}, nil
}

func path(value string) (*rbacv3.Permission, error) {
	if strings.ContainsAny(value, "{}") {
		return template(value)
	}
	m := &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: text(value)}}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UrlPath{UrlPath: m}}, nil
}

// A path template is segments, of which some are operators. Envoy refuses other letters
// in the other segments, and the whole listener with them.
var literal = regexp.MustCompile(`^[-A-Za-z0-9._~%!$&'()+,;:@=]+$`)

// template matches a path with {*}, which is one segment, and {**}, which is any number of
// them.
func template(value string) (*rbacv3.Permission, error) {
	wrong := fmt.Errorf("%q is not a path template: {*} and {**} are whole segments, {**} is the last of them, and there is no other * or brace", value)
	segments := strings.Split(value, "/")
	if segments[0] != "" {
		return nil, wrong
	}
	last := false
	for i, segment := range segments[1:] {
		switch {
		case last && (segment == "{*}" || segment == "{**}"):
			return nil, wrong
		case segment == "{*}":
			segments[i+1] = "*"
		case segment == "{**}":
			segments[i+1], last = "**", true
		case segment == "" && i == len(segments)-2:
		case !literal.MatchString(segment):
			return nil, wrong
		}
	}
	config := &templatev3.UriTemplateMatchConfig{PathTemplate: strings.Join(segments, "/")}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UriTemplate{UriTemplate: &corev3.TypedExtensionConfig{
		Name: "envoy.path.match.uri_template.uri_template_matcher", TypedConfig: resource.Any(config),
	}}}, nil
}

// block reads an address or a block of addresses.
func block(value string) (*corev3.CidrRange, error) {
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		addr, notAddr := netip.ParseAddr(value)
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), notAddr
	}
	if err != nil || prefix.Addr().Zone() != "" || prefix.Addr().Is4In6() {
		return nil, fmt.Errorf("%q is neither an IP address nor a CIDR block: write one such as 10.0.0.0/8", value)
	}
	return &corev3.CidrRange{AddressPrefix: prefix.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(prefix.Bits()))}, nil
}

func address(value string) (*rbacv3.Permission, error) {
	at, err := block(value)
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationIp{DestinationIp: at}}, err
}

func peerAddress(value string) (*rbacv3.Principal, error) {
	at, err := block(value)
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_DirectRemoteIp{DirectRemoteIp: at}}, err
}

func callerAddress(value string) (*rbacv3.Principal, error) {
	at, err := block(value)
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_RemoteIp{RemoteIp: at}}, err
}

func sni(value string) (*rbacv3.Permission, error) {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_RequestedServerName{RequestedServerName: text(value)}}, nil
}

const headerPrefix = "request.headers["

// headerName is what Envoy accepts as the name of a header, or of a part of the request
// line.
var headerName = regexp.MustCompile("^:?[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// header matches the header that the key names.
func header(key string) func(string) (*rbacv3.Principal, error) {
	name, closed := strings.CutSuffix(strings.TrimPrefix(key, headerPrefix), "]")
	return func(value string) (*rbacv3.Principal, error) {
		if !closed || !headerName.MatchString(name) {
			return nil, fmt.Errorf("%q does not name a header: write request.headers[NAME]", key)
		}
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_Header{Header: ofHeader(name, value)}}, nil
	}
}

const (
	experimental   = "experimental."
	metadataPrefix = experimental + "envoy.filters."
)

// metadata matches what another filter reports about a connection or request; the value [v]
// is that of an item of a list.
func metadata(key string) func(string) (*rbacv3.Permission, error) {
	filter, name, named := strings.Cut(strings.TrimPrefix(key, experimental), "[")
	name, closed := strings.CutSuffix(name, "]")
	return func(value string) (*rbacv3.Permission, error) {
		if !named || !closed || name == "" {
			return nil, fmt.Errorf("%q does not name metadata: write experimental.envoy.filters.FILTER[KEY]", key)
		}
		item, list := strings.CutPrefix(value, "[")
		item, ends := strings.CutSuffix(item, "]")
		if !list || !ends {
			item, list = value, false
		}
		if item == "" {
			return nil, errEmpty
		}
		of := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: text(item)}}
		if list {
			of = &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{
				ListMatch: &matcherv3.ListMatcher{MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: of}},
			}}
		}
		return &rbacv3.Permission{Rule: &rbacv3.Permission_SourcedMetadata{SourcedMetadata: &rbacv3.SourcedMetadata{
			MetadataMatcher: &matcherv3.MetadataMatcher{
				Filter: filter, Value: of,
				Path: []*matcherv3.MetadataMatcher_PathSegment{{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: name}}},
			},
		}}}, nil
	}
}
