package transport

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	mediaTypeGraphQL = "application/graphql-response+json"
	mediaTypeJSON    = "application/json"
	noStreams        = "neither text/event-stream (SSE) nor graphql-transport-ws (WebSocket) is offered by this hub yet"
)

// admit checks everything of a request that stands before its body, and returns
// the media type of the answer.
func admit(r *http.Request) (mediaType string, fault *refusal) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		fault = refuse(http.StatusMethodNotAllowed, BadUserInput, "GraphQL is asked by POST, or by GET with a query")
		fault.allow = "GET, POST"
		return "", fault
	}
	if fault := sameSite(r); fault != nil {
		return "", fault
	}
	if r.Header.Get("Upgrade") != "" {
		return "", refuse(http.StatusBadRequest, BadUserInput, "the connection cannot be upgraded: "+noStreams)
	}
	mediaType, ok := negotiate(r.Header.Values("Accept"))
	if !ok {
		return "", refuse(http.StatusNotAcceptable, BadUserInput,
			"answers are "+mediaTypeGraphQL+" or "+mediaTypeJSON+"; "+noStreams)
	}
	if r.Method == http.MethodPost {
		return mediaType, jsonBody(r.Header)
	}
	return mediaType, nil
}

// sameSite refuses what a page of another origin made a browser send. Programs
// that are not browsers send none of these headers.
func sameSite(r *http.Request) *refusal {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return refuse(http.StatusForbidden, Forbidden, "the request comes from a page of another site")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	parsed, err := url.Parse(origin)
	if err != nil || parsed.Host == "" || !strings.EqualFold(parsed.Host, r.Host) {
		return refuse(http.StatusForbidden, Forbidden, "the request comes from a page of another origin")
	}
	return nil
}

// jsonBody refuses every body but plain JSON in UTF-8. A browser cannot send
// that type across origins without asking first, and it is never told yes.
func jsonBody(header http.Header) *refusal {
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || mediaType != mediaTypeJSON {
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "the Content-Type of a request is "+mediaTypeJSON)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "the charset of a request is utf-8")
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "a request body is sent without Content-Encoding")
	}
	return nil
}

// negotiate picks the answer's media type by the weights of Accept. Without the
// header, and among equals, application/graphql-response+json is preferred.
func negotiate(accept []string) (mediaType string, ok bool) {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return mediaTypeGraphQL, true
	}
	best := 0.0
	for _, offered := range []string{mediaTypeGraphQL, mediaTypeJSON} {
		if weight := weightOf(offered, header); weight > best {
			mediaType, best = offered, weight
		}
	}
	return mediaType, best > 0
}

// weightOf returns the weight of offered by the most specific range that covers
// it, 0 where none does.
func weightOf(offered, header string) float64 {
	weight, precision := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || !takesUTF8(params) {
			continue
		}
		found := map[string]int{"*/*": 1, "application/*": 2, offered: 3}[name]
		if found > precision {
			precision, weight = found, quality(params)
		}
	}
	return weight
}

func takesUTF8(params map[string]string) bool {
	charset, named := params["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

func quality(params map[string]string) float64 {
	written, named := params["q"]
	if !named {
		return 1
	}
	weight, err := strconv.ParseFloat(written, 64)
	if err != nil || weight < 0 || weight > 1 || weight != weight {
		return 0
	}
	return weight
}
