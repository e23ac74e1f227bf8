package virtualservice

import (
	"fmt"
	"net/http"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// matchedPrefix in front of a redirect's path marks a path of which only
// the matched prefix is replaced.
const matchedPrefix = "%PREFIX()%"

var redirectCodes = map[uint32]routev3.RedirectAction_RedirectResponseCode{
	0:                            routev3.RedirectAction_MOVED_PERMANENTLY,
	http.StatusMovedPermanently:  routev3.RedirectAction_MOVED_PERMANENTLY,
	http.StatusFound:             routev3.RedirectAction_FOUND,
	http.StatusSeeOther:          routev3.RedirectAction_SEE_OTHER,
	http.StatusTemporaryRedirect: routev3.RedirectAction_TEMPORARY_REDIRECT,
	http.StatusPermanentRedirect: routev3.RedirectAction_PERMANENT_REDIRECT,
}

// Redirect answers requests with a redirect; port is the one that they came to, over TLS or not.
func Redirect(in *networking.HTTPRedirect, port uint16, tls bool) (*routev3.Route_Redirect, error) {
	code, ok := redirectCodes[in.GetRedirectCode()]
	if !ok {
		return nil, fmt.Errorf(".redirect.redirectCode: %d is not a redirect that Envoy makes", in.GetRedirectCode())
	}
	out := &routev3.RedirectAction{ResponseCode: code, HostRedirect: in.GetAuthority()}
	if prefix, is := strings.CutPrefix(in.GetUri(), matchedPrefix); is {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: prefix}
	} else if in.GetUri() != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: in.GetUri()}
	} else if in.GetPrefixRewrite() != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: in.GetPrefixRewrite()}
	}
	if in.GetScheme() != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: in.GetScheme()}
	}
	out.PortRedirect = redirectPort(in, port, tls)
	return &routev3.Route_Redirect{Redirect: out}, nil
}

// redirectPort is the port that the redirect names; 0: none, as that of the scheme is meant.
func redirectPort(in *networking.HTTPRedirect, from uint16, tls bool) uint32 {
	port := in.GetPort()
	if in.GetDerivePort() == networking.HTTPRedirect_FROM_REQUEST_PORT {
		port = uint32(from)
	}
	scheme := in.GetScheme()
	if scheme == "" && tls {
		scheme = "https"
	}
	standard := uint32(80)
	if scheme == "https" {
		standard = 443
	}
	if port == standard {
		return 0
	}
	return port
}

// DirectResponse answers requests itself.
func DirectResponse(in *networking.HTTPDirectResponse) (*routev3.Route_DirectResponse, error) {
	out := &routev3.DirectResponseAction{Status: in.GetStatus()}
	switch body := in.GetBody().GetSpecifier().(type) {
	case *networking.HTTPBody_String_:
		out.Body = resource.TextSource(body.String_)
	case *networking.HTTPBody_Bytes:
		out.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: body.Bytes}}
	}
	if size := len(out.GetBody().GetInlineString()) + len(out.GetBody().GetInlineBytes()); size > resource.MaxDirectBody {
		return nil, fmt.Errorf(".directResponse.body: %d bytes, at most %d are sent", size, resource.MaxDirectBody)
	}
	return &routev3.Route_DirectResponse{DirectResponse: out}, nil
}

// SetRewrite has requests changed before they are sent on.
func SetRewrite(action *routev3.RouteAction, in *networking.HTTPRewrite) error {
	if re := in.GetUriRegexRewrite(); re != nil {
		pattern, err := safeRegex(re.GetMatch())
		if err != nil {
			return fmt.Errorf(".rewrite.uriRegexRewrite.match: %w", err)
		}
		action.RegexRewrite = &matcherv3.RegexMatchAndSubstitute{Pattern: pattern, Substitution: re.GetRewrite()}
	} else {
		action.PrefixRewrite = in.GetUri()
	}
	if in.GetAuthority() != "" {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: in.GetAuthority()}
	}
	return nil
}
