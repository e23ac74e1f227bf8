package transport

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/99designs/gqlgen/graphql"
)

// read takes the parameters of an admitted request.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *refusal) {
	started := graphql.Now()
	params, fault := h.parameters(w, r)
	if fault != nil {
		return nil, fault
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: started, End: graphql.Now()}
	return params, nil
}

func (h *Handler) parameters(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *refusal) {
	if r.Method == http.MethodGet {
		if len(r.URL.RawQuery) > h.options.Limits.QueryString {
			return nil, refuse(http.StatusRequestURITooLong, BadUserInput, "the query string is too long; send the operation by POST")
		}
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, BadUserInput, "the query string is not well-formed")
		}
		return fromQueryString(values)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.Limits.Body))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, BadUserInput, "the request body is larger than the hub takes")
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput, "the request body ended too early")
	}
	return fromBody(body)
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
		if err := checkJSON(member); err != nil {
			return nil, refuse(http.StatusBadRequest, BadUserInput, "the parameter "+name+" "+err.Error())
		}
		members[name] = member
	}
	return fromMembers(members)
}

func fromBody(body []byte) (*graphql.RawParams, *refusal) {
	if err := checkJSON(body); err != nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput, "the request body "+err.Error())
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, refuse(http.StatusBadRequest, BadUserInput,
			"the request body is one JSON object with a query; lists of operations are not taken")
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
			return nil, malformed("the parameter " + member.name + " is " + member.kind)
		}
	}
	if params.Query == "" {
		return nil, malformed("the parameter query is missing")
	}
	return params, nil
}

func malformed(text string) *refusal {
	return refuse(http.StatusUnprocessableEntity, BadUserInput, text)
}
