package transport

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	mediaTypeGraphQL = "application/graphql-response+json"
	mediaTypeJSON    = "application/json"
	mediaTypeEvents  = "text/event-stream"
	streams          = "ask with Accept: text/event-stream (SSE), or by WebSocket with the subprotocol graphql-transport-ws"
)

// accepted is how a request may be answered.
type accepted struct {
	mediaType string // Of answers that are not a stream, refusals among them.
	plain     bool   // Queries and mutations are answered in that type, else as a stream.
	stream    bool   // A stream of events is taken.
}

// admit checks everything of a request that stands before its body.
func (h *Handler) admit(r *http.Request) (accepts accepted, fault *refusal) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		fault = refuse(http.StatusMethodNotAllowed, BadUserInput,
			"use POST, or GET with a query; the single connection mode of graphql-sse is not supported")
		fault.allow = "GET, POST"
		return accepts, fault
	}
	if fault := h.sameSite(r); fault != nil {
		return accepts, fault
	}
	accepts, ok := negotiate(r.Header.Values("Accept"))
	if !ok {
		return accepts, refuse(http.StatusNotAcceptable, BadUserInput,
			"answers are "+mediaTypeGraphQL+", "+mediaTypeJSON+" or a stream; for a stream "+streams)
	}
	if accepts.stream && (r.Header.Get(reservationHeader) != "" || r.URL.Query().Has("token")) {
		return accepts, refuse(http.StatusBadRequest, BadUserInput,
			"the single connection mode of graphql-sse is not offered; open a stream for each operation")
	}
	if r.Method == http.MethodPost {
		return accepts, jsonBody(r.Header)
	}
	return accepts, nil
}

// reservationHeader marks requests of graphql-sse's single connection mode.
const reservationHeader = "X-GraphQL-Event-Stream-Token"

// sameSite refuses what a page of another origin made a browser send. Programs
// that are not browsers send none of these headers.
func (h *Handler) sameSite(r *http.Request) *refusal {
	if slices.ContainsFunc(h.options.Origins, func(allowed string) bool { return strings.EqualFold(allowed, r.Header.Get("Origin")) }) {
		return nil
	}
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
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "the Content-Type of a request must be "+mediaTypeJSON)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "the charset of a request is utf-8")
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(http.StatusUnsupportedMediaType, BadUserInput, "a request body is sent without Content-Encoding")
	}
	return nil
}

// negotiate picks the answer's media type by the weights of Accept. Clients that do
// not name application/graphql-response+json get application/json, which they all
// know; among equals the former is preferred. A
// stream is taken where text/event-stream is named; queries and mutations are
// answered as one only where it weighs more than the other types.
func negotiate(accept []string) (accepts accepted, ok bool) {
	accepts.mediaType = mediaTypeJSON
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		accepts.plain = true
		return accepts, true
	}
	best := weightOf(mediaTypeGraphQL, header)
	if best > 0 {
		accepts.mediaType = mediaTypeGraphQL
	}
	if weight := weightOf(mediaTypeJSON, header, "application/*", "*/*"); weight > best {
		accepts.mediaType, best = mediaTypeJSON, weight
	}
	stream := weightOf(mediaTypeEvents, header)
	accepts.stream, accepts.plain = stream > 0, best > 0 && best >= stream
	return accepts, accepts.plain || accepts.stream
}

// weightOf returns the weight of offered by its own name or else by the first of
// ranges that is there, 0 where there is none.
func weightOf(offered, header string, ranges ...string) float64 {
	weight, precision := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || !takesUTF8(params) {
			continue
		}
		found := len(ranges) - slices.Index(ranges, name)
		switch {
		case name == offered:
			found = len(ranges) + 1
		case found > len(ranges):
			continue
		}
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
