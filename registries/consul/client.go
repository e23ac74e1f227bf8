package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
)

const (
	requestTimeout = 4 * time.Second  // of a canary read; with beatEvery it keeps STALE within 15 s
	readTimeout    = 15 * time.Second // of any other read, of which each progressSize must come within requestTimeout
	maxAnswer      = 64 << 20
)

// client reads Consul's HTTP API over one set of shared connections. Bodies of
// refused answers never reach an error.
type client struct {
	base     *url.URL
	dc       string
	http     *http.Client
	token    func() (string, error)
	count    func(string)
	budget   *budget
	hadToken atomic.Bool
	starting chan struct{} // holds a place for each request that is not on its way yet
}

// startingAtOnce keeps many long polls that start together from opening a
// connection each before they find that they can share one.
const startingAtOnce = 2

// start waits for a place among the requests that are being sent and returns
// the context to send with. The place is free again once the request is on its
// way, or by done.
func (c *client) start(ctx context.Context) (sending context.Context, done func(), err error) {
	select {
	case c.starting <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	done = sync.OnceFunc(func() { <-c.starting })
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: done}), done, nil
}

// request is one read. With an index it is a long poll of at most wait.
type request struct {
	kind    string
	path    string
	filter  string // an expression that the entries of the answer match
	index   uint64
	wait    time.Duration
	timeout time.Duration // 0 is readTimeout
}

// answer has the headers of a good answer.
type answer struct {
	index    uint64 // 0 when missing or no number
	filtered bool   // the token may not see all of it
	deny     bool   // without rights nothing is visible
	streamed bool   // from an agent's own view: what rights hide is missing without a word
	http2    bool
}

// refusal is an error that no retry heals soon: an operator must change rights, a
// token or an address.
type refusal struct {
	msg    string
	other  bool // another Consul answers
	blind  bool // the token may not see everything
	denied bool // of the token itself
}

func (r *refusal) Error() string { return r.msg }

// busy is Consul's "too many requests".
type busy struct{ after time.Duration }

func (b *busy) Error() string { return "consul answers 429: too many requests" }

// noAnswer is a request that got no answer in time.
type noAnswer struct{ after time.Duration }

func (s *noAnswer) Error() string {
	return fmt.Sprintf("reading from consul: no answer within %s", s.after.Round(time.Second))
}

var errNoLeader = errors.New("reading from consul: its servers have no leader; the logs of the servers say why")

// noACL says that this Consul knows no tokens at all.
type noACL struct{}

func (*noACL) Error() string { return "consul answers 401: it has no ACLs" }

// unreadable is an answer whose content cannot be used, for one service only.
type unreadable struct {
	msg   string
	fault bool  // the hub panicked over it
	cause error // why reading failed; nil: an answer came, whose content cannot be used
}

// The codes of services whose answer cannot be used.
const (
	codeUnreadable = "UNREADABLE"
	codeFault      = federation.CodeHubFault
)

func (u *unreadable) code() string {
	if u.fault {
		return codeFault
	}
	return codeUnreadable
}

func (u *unreadable) Error() string { return u.msg }

func (c *client) url(q request) string {
	u := *c.base
	v := url.Values{}
	if c.dc != "" {
		v.Set("dc", c.dc)
	}
	if q.filter != "" {
		v.Set("filter", q.filter)
	}
	if q.index > 0 {
		v.Set("index", strconv.FormatUint(q.index, 10))
		v.Set("wait", strconv.FormatInt(max(q.wait.Milliseconds(), 1), 10)+"ms")
	}
	u.Path = q.path
	u.RawQuery = v.Encode()
	return u.String()
}

// get reads one answer into v. A 403 is tried once more when the token has been
// changed meanwhile.
func (c *client) get(ctx context.Context, q request, v any) (answer, error) {
	for range 2 {
		token, err := c.readToken()
		if err != nil {
			return answer{}, err
		}
		if token == "" && c.hadToken.Load() {
			return answer{}, &refusal{msg: "tokenFile has become empty; write the token again"}
		}
		a, err := c.try(ctx, q, token, v)
		var r *refusal
		if now, e := c.readToken(); errors.As(err, &r) && e == nil && now != token {
			continue
		}
		if err == nil && token != "" {
			c.hadToken.Store(true)
		}
		return a, err
	}
	return answer{}, errors.New("reading from consul: the token keeps changing")
}

// readToken trims what editors leave at the end of a file.
func (c *client) readToken() (string, error) {
	token, err := c.token()
	if err != nil {
		return "", fmt.Errorf("reading the token (tokenFile): %w", err)
	}
	token = strings.TrimSpace(token)
	if !isTidy(token) || !isASCII(token) {
		return "", &refusal{msg: "tokenFile does not hold a token: it is too long or has odd characters"}
	}
	return token, nil
}

func (c *client) try(ctx context.Context, q request, token string, v any) (answer, error) {
	limit := readTimeout
	if q.timeout > 0 {
		limit = q.timeout
	}
	ofBody := limit
	if q.index > 0 {
		limit += q.wait + q.wait/16 // Consul adds up to a sixteenth
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, started, err := c.start(ctx)
	if err != nil {
		return answer{}, fmt.Errorf("reading from consul: %w", err)
	}
	defer started()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(q), nil)
	if err != nil {
		return answer{}, &unreadable{msg: "its name makes no request"}
	}
	if token != "" {
		req.Header.Set("X-Consul-Token", token)
	}
	c.count(q.kind)
	res, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return answer{}, &noAnswer{after: limit}
		}
		return answer{}, fmt.Errorf("reading from consul: %w", withoutURL(err))
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return answer{}, c.status(res)
	}
	counted, done := c.budget.body(res.Body)
	defer done()
	// A long poll waits for its headers; an answer that has begun must come to an end soon.
	began := time.Now()
	slow := time.AfterFunc(min(ofBody, requestTimeout), cancel)
	defer slow.Stop()
	counted.progress = func() { slow.Reset(min(ofBody-time.Since(began), requestTimeout)) }
	a, err := read(res, q.path, counted, v)
	if err != nil && ctx.Err() != nil {
		return a, fmt.Errorf("reading an answer of consul: it is not complete after %s", time.Since(began).Round(time.Second))
	}
	return a, err
}

func read(res *http.Response, path string, counted io.Reader, v any) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(counted, maxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("reading an answer of consul: %w", err)
	}
	if len(body) > maxAnswer {
		return answer{}, &unreadable{msg: fmt.Sprintf("the answer to %s is larger than %d MiB: remove what is not needed from Consul",
			plain(path), maxAnswer>>20)}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return answer{}, &unreadable{msg: "the answer is not what Consul's API promises: " + jsonTrouble(err)}
	}
	index, err := strconv.ParseUint(res.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil {
		index = 0
	}
	return answer{
		index: index, http2: res.ProtoMajor >= 2,
		streamed: res.Header.Get("X-Consul-Query-Backend") == "streaming",
		deny:     strings.EqualFold(res.Header.Get("X-Consul-Default-Acl-Policy"), "deny"),
		filtered: strings.EqualFold(res.Header.Get("X-Consul-Results-Filtered-By-Acls"), "true"),
	}, nil
}

// jsonTrouble names the field and type that are wrong and repeats no content.
func jsonTrouble(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("field %s holds a %s", plain(wrong.Field), strings.SplitN(wrong.Value, " ", 2)[0])
	}
	return "it is not JSON of the right shape"
}

// leaderless are phrases of a Consul that waited in vain for a leader.
var leaderless = []string{"No cluster leader", "Raft leader not found", "Not ready to serve consistent reads"}

// status turns a refused answer into an error. It looks into the body for known
// phrases and repeats none of it.
func (c *client) status(res *http.Response) error {
	head, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	switch {
	case res.StatusCode == http.StatusForbidden:
		return &refusal{
			denied: true,
			msg:    "consul answers 403: it does not know the token or the token lacks rights; write a token with service_prefix \"\" and node_prefix \"\" read to tokenFile",
		}
	case res.StatusCode == http.StatusUnauthorized && bytes.Contains(head, []byte("ACL support disabled")):
		return &noACL{}
	case res.StatusCode == http.StatusUnauthorized:
		return &refusal{denied: true, msg: "consul answers 401: it wants another token; see tokenFile"}
	case res.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return &busy{after: min(time.Duration(max(seconds, 0))*time.Second, time.Minute)}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &refusal{msg: fmt.Sprintf("consul answers %d, a redirect, which is not followed; name the agent itself in consul.address",
			res.StatusCode)}
	case bytes.Contains(head, []byte("No path to datacenter")):
		return fmt.Errorf("reading from consul: it knows no way to datacenter %s; see consul.datacenter", quote(c.dc))
	case slices.ContainsFunc(leaderless, func(phrase string) bool { return bytes.Contains(head, []byte(phrase)) }):
		return errNoLeader
	case bytes.Contains(head, []byte("No known Consul servers")):
		return errors.New("reading from consul: the agent knows no server of its datacenter; let it join one (retry_join)")
	case bytes.Contains(head, []byte("rpc error getting client")):
		return errors.New("reading from consul: the agent cannot reach the servers of its datacenter; its log says why")
	}
	return fmt.Errorf("reading from consul: it answers %d; Consul's log says why", res.StatusCode)
}

// withoutURL drops the request's address from an error: it repeats what the
// cluster's status shows anyway.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
