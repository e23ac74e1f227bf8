package transport

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// parse takes the parameters of a request that has arrived.
func (h *Handler) parse(r *http.Request, body []byte, started time.Time) (params *graphql.RawParams, fault *refusal) {
	if r.Method == http.MethodGet {
		params, fault = h.fromURL(r.URL)
	} else {
		params, fault = h.fromBody(body)
	}
	if fault != nil {
		return nil, fault
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: started, End: graphql.Now()}
	return params, nil
}

func (h *Handler) fromURL(from *url.URL) (*graphql.RawParams, *refusal) {
	if len(from.RawQuery) > h.options.Limits.QueryString {
		return nil, refuse(http.StatusRequestURITooLong, BadUserInput, "the query string is too long; send the operation by POST")
	}
	values, err := url.ParseQuery(from.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput, "the query string is not well-formed")
	}
	return fromQueryString(values)
}

func fromQueryString(values url.Values) (*graphql.RawParams, *refusal) {
	members := make(map[string]json.RawMessage)
	for _, name := range []string{"query", "operationName", "variables", "extensions"} {
		given := values[name]
		if len(given) > 1 {
			return nil, malformed("the parameter " + name + " is given twice")
		}
		if len(given) == 0 || given[0] == "" && name != "query" {
			continue
		}
		member := json.RawMessage(given[0])
		if name == "query" || name == "operationName" {
			member, _ = json.Marshal(given[0]) // A string is always valid JSON.
		}
		if err := checkJSON(member, len(member)); err != nil { // is short
			return nil, refuse(http.StatusBadRequest, BadUserInput, "the parameter "+name+" "+err.Error())
		}
		members[name] = member
	}
	return fromMembers(members)
}

func fromBody(body []byte, values int) (*graphql.RawParams, *refusal) {
	if err := checkJSON(body, values); err != nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput, "the request body "+err.Error())
	}
	members := membersOf(body)
	if members == nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput,
			"the request body must be one JSON object with a query; batches are not supported")
	}
	return fromMembers(members)
}

// fromMembers takes the parameters by their exact names; what else the request
// has is ignored, as the draft asks for.
func fromMembers(members map[string]json.RawMessage) (*graphql.RawParams, *refusal) {
	params := &graphql.RawParams{}
	into := []struct {
		name, kind string
		value      any
	}{
		{"query", "a string", &params.Query},
		{"operationName", "a string or null", &params.OperationName},
		{"variables", "an object or null", &params.Variables},
		{"extensions", "an object or null", &params.Extensions},
	}
	for _, member := range into {
		if written, given := members[member.name]; given && decode(written, member.value) != nil {
			return nil, malformed("the parameter " + member.name + " must be " + member.kind)
		}
	}
	if params.Query == "" && params.Extensions["persistedQuery"] != nil {
		return nil, refuse(http.StatusBadRequest, PersistedQueryNotSupported, "PersistedQueryNotSupported") // the text that clients look for
	}
	if params.Query == "" {
		return nil, malformed("the parameter query is missing")
	}
	return params, nil
}

func malformed(text string) *refusal {
	return refuse(http.StatusUnprocessableEntity, BadUserInput, text)
}
