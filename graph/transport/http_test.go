package transport_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"isthmus.dev/isthmus/graph/transport"
)

const (
	graphqlJSON = "application/graphql-response+json; charset=utf-8"
	plainJSON   = "application/json; charset=utf-8"
)

func TestRequestsAndTheirStatus(t *testing.T) {
	big := sized("{hello}", 1<<20)
	handler := newHandler(t)
	for name, row := range map[string]struct {
		call   call
		status int
		code   string
	}{
		"query by POST":        {post("{hello}"), 200, ""},
		"query by GET":         {get("query={hello}"), 200, ""},
		"mutation by POST":     {post("mutation{change}"), 200, ""},
		"BG11 mutation by GET": {get("query=mutation{change}"), 405, "BAD_USER_INPUT"},
		"PUT":                  {call{"PUT", "/graphql", "{}", nil}, 405, "BAD_USER_INPUT"},
		"BG14 preflight of another origin": {
			call{"OPTIONS", "/graphql", "", map[string]string{"Origin": "http://evil.example"}},
			405, "BAD_USER_INPUT",
		},
		"HEAD":                            {call{"HEAD", "/graphql?query={hello}", "", nil}, 405, "BAD_USER_INPUT"},
		"BG12 text":                       {post("{hello}").with("Content-Type", "text/plain"), 415, "BAD_USER_INPUT"},
		"BG12 form":                       {post("{hello}").with("Content-Type", "application/x-www-form-urlencoded"), 415, "BAD_USER_INPUT"},
		"BG12 upload":                     {post("{hello}").with("Content-Type", "multipart/form-data; boundary=x"), 415, "BAD_USER_INPUT"},
		"BG12 no content type":            {call{"POST", "/graphql", `{"query":"{hello}"}`, nil}, 415, "BAD_USER_INPUT"},
		"other charset":                   {post("{hello}").with("Content-Type", "application/json; charset=latin1"), 415, "BAD_USER_INPUT"},
		"charset in capitals":             {post("{hello}").with("Content-Type", "application/json; charset=UTF-8"), 200, ""},
		"BG10 compressed":                 {post("{hello}").with("Content-Encoding", "gzip"), 415, "BAD_USER_INPUT"},
		"BG10 too large":                  {postBody(big), 413, "BAD_USER_INPUT"},
		"long URL":                        {get("query={hello}&x=" + strings.Repeat("x", 17<<10)), 414, "BAD_USER_INPUT"},
		"BG10 empty":                      {postBody(" "), 400, "BAD_USER_INPUT"},
		"BG10 null":                       {postBody("null"), 400, "BAD_USER_INPUT"},
		"BG10 list":                       {postBody("[]"), 400, "BAD_USER_INPUT"},
		"BG06 batch":                      {postBody(`[{"query":"{hello}"},{"query":"{hello}"}]`), 400, "BAD_USER_INPUT"},
		"BG10 duplicate key":              {postBody(`{"query":"{hello}","query":"{hello}"}`), 400, "BAD_USER_INPUT"},
		"BG10 duplicate key in variables": {postBody(`{"query":"{hello}","variables":{"a":1,"a":2}}`), 400, "BAD_USER_INPUT"},
		"BG10 byte order mark":            {postBody("\xff\xfe{\x00}\x00"), 400, "BAD_USER_INPUT"},
		"two values":                      {postBody(`{"query":"{hello}"} {}`), 400, "BAD_USER_INPUT"},
		"key in capitals is another key":  {postBody(`{"QUERY":"{hello}"}`), 422, "BAD_USER_INPUT"},
		"query is a number":               {postBody(`{"query":1}`), 422, "BAD_USER_INPUT"},
		"variables are a list":            {postBody(`{"query":"{hello}","variables":[]}`), 422, "BAD_USER_INPUT"},
		"nulls":                           {postBody(`{"query":"{hello}","variables":null,"operationName":null,"extensions":null}`), 200, ""},
		"GET without query":               {get("a=b"), 422, "BAD_USER_INPUT"},
		"GET with two queries":            {get("query={hello}&query={hello}"), 422, "BAD_USER_INPUT"},
		"GET with bad variables":          {get("query={hello}&variables={"), 400, "BAD_USER_INPUT"},
		"GET with variables":              {get("query=query($n:String){hello(name:$n)}&variables={\"n\":\"x\"}"), 200, ""},
		"document does not parse":         {post("{"), 400, "GRAPHQL_PARSE_FAILED"},
		"half a character in a literal":   {post(`{hello(name:"\"\ud83d")}`), 422, "GRAPHQL_VALIDATION_FAILED"},
		"a character as two escapes":      {post("#\"\n" + `{hello(name:"\ud83d\ude00")}`), 422, "GRAPHQL_VALIDATION_FAILED"},
		"half a character after others":   {post(`{a:hello(name:"é🌉") b:hello(name:"\ud83d")}`), 422, "GRAPHQL_VALIDATION_FAILED"},
		"escapes that are not a half":     {post(`#"\ud83d` + "\n" + `{hello(name:"\\ud83d\u0041") a:hello(name:"""\""" "\ud83d""")}`), 200, ""},
		"unknown field":                   {post("{nothing}"), 422, "GRAPHQL_VALIDATION_FAILED"},
		"unknown operation":               {postBody(`{"query":"query A{hello}","operationName":"B"}`), 422, "GRAPHQL_VALIDATION_FAILED"},
		"subscription over plain JSON":    {post("subscription{ticks}"), 406, "BAD_USER_INPUT"},
		"deferred part":                   {post("{hello ...@defer{item{id}}}"), 422, "GRAPHQL_VALIDATION_FAILED"},
		"other upgrades are not taken":    {get("query={hello}").with("Upgrade", "h2c"), 200, ""},
		"half an upgrade is none":         {get("query={hello}").with("Upgrade", "websocket"), 200, ""},
		"BG13 page of another site":       {post("{hello}").with("Sec-Fetch-Site", "cross-site"), 403, "FORBIDDEN"},
		"BG13 GET from another site":      {get("query={hello}").with("Sec-Fetch-Site", "cross-site"), 403, "FORBIDDEN"},
		"BG13 GET from a sister site":     {get("query={hello}").with("Sec-Fetch-Site", "same-site"), 403, "FORBIDDEN"},
		"GET from the hub's own page":     {get("query={hello}").with("Sec-Fetch-Site", "same-origin"), 200, ""},
		"BG13 foreign origin":             {post("{hello}").with("Origin", "http://evil.example"), 403, "FORBIDDEN"},
		"BG14 origin null":                {post("{hello}").with("Origin", "null"), 403, "FORBIDDEN"},
		"own origin":                      {post("{hello}").with("Origin", "http://hub.example"), 200, ""},
		"BG09 lone surrogate":             {postBody(`{"query":"{hello}","variables":{"n":"\ud800"}}`), 400, "BAD_USER_INPUT"},
		"BG09 surrogate pair": {
			postBody(`{"query":"query($n:String){hello(name:$n)}","variables":{"n":"\ud83d\ude00\\ud800"}}`),
			200, "",
		},
		"BG09 variable of the wrong type": {
			postBody(`{"query":"query($n:Int){echo(size:$n)}","variables":{"n":"x"}}`),
			422, "GRAPHQL_VALIDATION_FAILED",
		},
		"BG09 missing variable": {postBody(`{"query":"query($n:Int!){echo(size:$n)}"}`), 422, "GRAPHQL_VALIDATION_FAILED"},
		"BG09 huge number": {
			postBody(`{"query":"query($n:Float){echo(share:$n)}","variables":{"n":1e400}}`),
			422, "GRAPHQL_VALIDATION_FAILED",
		},
		"BG09 huge number in the document": {post("{echo(share:1e400)}"), 422, "GRAPHQL_VALIDATION_FAILED"},
		"BG07 2^63":                        {post("{items(first:9223372036854775808){totalCount}}"), 422, "GRAPHQL_VALIDATION_FAILED"},
		"BG10 nesting": {postBody(`{"query":"{hello}","variables":{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]",
			5000) + `}}`), 400, "BAD_USER_INPUT"},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, handler, row.call)
			if got.status != row.status || got.code() != row.code {
				t.Fatalf("got %d %q, want %d %q\n%s", got.status, got.code(), row.status, row.code, got.body)
			}
			if row.status != 200 && strings.Contains(got.body, `"data"`) {
				t.Errorf("a refused request has data: %s", got.body)
			}
			if id := got.header.Get("X-Request-Id"); id == "" || len(got.Errors) > 0 && got.Errors[0].Extensions.RequestID != id {
				t.Errorf("the request ID %q is not in the error: %s", id, got.body)
			}
		})
	}
}

func TestAllowNamesTheMethods(t *testing.T) {
	handler := newHandler(t)
	if allow := send(t, handler, get("query=mutation{change}")).header.Get("Allow"); allow != "POST" {
		t.Errorf("a mutation by GET gets %q", allow)
	}
	if allow := send(t, handler, call{"DELETE", "/graphql", "", nil}).header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("DELETE gets %q", allow)
	}
}

func TestAcceptDecidesTheMediaType(t *testing.T) {
	handler := newHandler(t)
	for accept, want := range map[string]string{
		"":              plainJSON, // R45
		"*/*":           plainJSON,
		"application/*": plainJSON,
		"application/graphql-response+json, application/json": graphqlJSON,
		"application/graphql-response+json;q=0.5, */*":        plainJSON,
		"application/json":                                                plainJSON,
		"application/graphql-response+json":                               graphqlJSON,
		"application/json, */*;q=0.1":                                     plainJSON,
		"application/json;q=0.5, application/graphql-response+json;q=0.4": plainJSON,
		"application/graphql-response+json;q=0, */*":                      plainJSON,
		"text/html, application/json;charset=UTF-8":                       plainJSON,
		"application/json;charset=latin1":                                 "",
		"text/html":                                                       "",
		"application/json;q=0":                                            "",
		"multipart/mixed":                                                 "",
	} {
		c := post("{hello}")
		if accept != "" {
			c = c.with("Accept", accept)
		}
		got := send(t, handler, c)
		if want == "" && got.status != http.StatusNotAcceptable {
			t.Errorf("Accept %q got %d", accept, got.status)
		}
		if want != "" && (got.status != 200 || got.header.Get("Content-Type") != want) {
			t.Errorf("Accept %q got %d %q, want %q", accept, got.status, got.header.Get("Content-Type"), want)
		}
	}
}

func TestRefusalsRepeatNothingOfTheBody(t *testing.T) {
	handler := newHandler(t)
	for _, body := range []string{`{"query": hunter2`, `{"query":1,"a":"hunter2"}`, `{"hunter2":1,"hunter2":2}`, `["hunter2"]`} {
		if got := send(t, handler, postBody(body)); strings.Contains(got.body, "hunter2") {
			t.Errorf("%s is repeated in %s", body, got.body)
		}
	}
}

func TestStreamsAreNamedWhereTheyAreNeeded(t *testing.T) {
	handler := newHandler(t)
	for _, c := range []call{
		post("subscription{ticks}"), get("query=subscription{ticks}"), post("subscription{ticks}").with("Accept", "*/*"),
		post("{hello}").with("Accept", "text/html"),
	} {
		got := send(t, handler, c)
		if got.status != 406 || !strings.Contains(got.body, "text/event-stream") || !strings.Contains(got.body, "graphql-transport-ws") {
			t.Errorf("the refusal does not name the streaming transports: %d %s", got.status, got.body)
		}
	}
}

func TestSeveralOperationsNeedAName(t *testing.T) {
	got := send(t, newHandler(t), post("query A{hello} query B{hello}"))
	if got.status != 422 || got.code() != "GRAPHQL_VALIDATION_FAILED" || !strings.Contains(got.body, "name one as operationName") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestPartialSuccess(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	draft := transport.New(newFakeSchema(t), transport.Options{Log: log, PartialSuccess: true})
	if got := send(t, newHandler(t), post("{hello refused}")); got.status != 200 || got.code() != "NOT_FOUND" || len(got.Data) == 0 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := send(t, draft, post("{hello refused}").with("Accept", "application/graphql-response+json")); got.status != 294 {
		t.Errorf("with the draft's status, got %d", got.status)
	}
	if got := send(t, draft, post("{hello refused}").with("Accept", "application/json")); got.status != 200 {
		t.Errorf("a client of plain JSON got %d", got.status)
	}
}

func TestBG32InnerErrorsGoToTheLogOnly(t *testing.T) {
	var log bytes.Buffer
	handler := transport.New(newFakeSchema(t), transport.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for query, status := range map[string]int{"{broken}": 200, "{panics}": 500} {
		log.Reset()
		got := send(t, handler, post(query))
		if got.status != status || got.code() != "INTERNAL" || strings.Contains(got.body, "hunter2") {
			t.Errorf("%s got %d %s", query, got.status, got.body)
		}
		id := got.header.Get("X-Request-Id")
		if !strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), id) {
			t.Errorf("the log has no cause with ID %s: %s", id, log.String())
		}
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	recorder := newRecorder(t, newHandler(t), iotest.ErrReader(http.ErrBodyReadAfterClose))
	if recorder.Code != 400 {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
}

func TestTooManyAtOnce(t *testing.T) {
	schema := newFakeSchema(t)
	handler := transport.New(schema, transport.Options{Limits: transport.Limits{InFlight: 1}})
	done := make(chan answer)
	go func() { done <- send(t, handler, post("{slow}")) }()
	schema.slow <- struct{}{} // The first operation has begun, and ends at once.
	<-done
	go func() { done <- send(t, handler, post("{a:slow b:slow}")) }()
	schema.slow <- struct{}{}
	got := send(t, handler, post("{hello}"))
	schema.slow <- struct{}{}
	if first := <-done; first.status != 200 || got.status != 503 || got.code() != "UNAVAILABLE" || got.header.Get("Retry-After") == "" {
		t.Errorf("the first got %d, the second %d %s", first.status, got.status, got.body)
	}
}

// TestR45PersistedQueriesAreRefusedSoThatClientsSendTheDocument: by the code and text
// that their clients look for.
func TestR45PersistedQueriesAreRefusedSoThatClientsSendTheDocument(t *testing.T) {
	handler := newHandler(t)
	const hash = `{"persistedQuery":{"version":1,"sha256Hash":"ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"}}`
	for _, c := range []call{postBody(`{"extensions":` + hash + `}`), get("extensions=" + url.QueryEscape(hash))} {
		got := send(t, handler, c)
		if got.status != http.StatusBadRequest || got.code() != "PERSISTED_QUERY_NOT_SUPPORTED" ||
			!strings.Contains(got.body, `"PersistedQueryNotSupported"`) {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
	if got := send(t, handler, postBody(`{"query":"{hello}","extensions":`+hash+`}`)); got.status != http.StatusOK {
		t.Errorf("with its document it gets %d %s", got.status, got.body)
	}
}
