// Package session connects a command to a hub, as flags, environment and contexts say.
package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/version"
)

const (
	defaultServer  = "http://127.0.0.1:8080" // where a hub serves GraphQL by default
	defaultTimeout = 30 * time.Second
	// Large manifests have more time than the default, a second per bytesPerSecond, but never
	// more than longest: then the hub itself stops waiting.
	bytesPerSecond = 32 << 10
	longest        = 2 * time.Minute
	// DefaultNamespace is where objects are looked for when none is named, as
	// with kubectl.
	DefaultNamespace = "default"
)

// Flags are the flags of every command that speaks with a hub.
type Flags struct {
	server, context        string
	tlsCA, tlsCert, tlsKey string
	timeout                time.Duration
	given                  *pflag.FlagSet // tells whether --timeout was
	minRevision            int64
	showQuery, noColor     bool
}

// Bind declares the flags.
func (r *Flags) Bind(f *pflag.FlagSet) { r.BindAs(f, "context") }

// BindAs is Bind where the flag --context is another one's.
func (r *Flags) BindAs(f *pflag.FlagSet, context string) {
	f.StringVar(&r.server, "server", "", "`URL` of the hub: http://HOST:PORT, https://HOST:PORT or unix:PATH (ISTHMUS_SERVER; default "+
		defaultServer+")")
	f.StringVar(&r.context, context, "", "`NAME` of a context of the config file (ISTHMUS_CONTEXT)")
	f.StringVar(&r.tlsCA, "tls-ca", "", "`FILE` of the CAs that sign the hub's certificate (ISTHMUS_TLS_CA)")
	f.StringVar(&r.tlsCert, "tls-cert", "", "`FILE` of your certificate (ISTHMUS_TLS_CERT)")
	f.StringVar(&r.tlsKey, "tls-key", "", "`FILE` of its key (ISTHMUS_TLS_KEY)")
	r.given = f
	f.DurationVar(&r.timeout, "timeout", defaultTimeout,
		"how long to wait for the hub, and for proxies with --wait; the default is longer for large manifests")
	f.Int64Var(&r.minRevision, "min-revision", 0, "`REVISION` of the configuration that the answer must include, as another hub returned it")
	f.BoolVar(&r.showQuery, "show-query", false, "print the GraphQL that is sent to standard error")
	f.BoolVar(&r.noColor, "no-color", false, "print without colours (NO_COLOR)")
}

// Session is a command's way to the hub.
type Session struct {
	*client.Client
	IO        cmdutil.Streams
	Look      output.Look
	Namespace string // of the context, or the default
	Timeout   time.Duration
	fixed     bool // --timeout was given
}

// Open joins flags, environment and contexts; it opens no connection.
func (r *Flags) Open(io cmdutil.Streams) (*Session, error) {
	if r.timeout <= 0 {
		return nil, cmdutil.Usagef("--timeout: %s is not a positive duration, such as 30s", r.timeout)
	}
	to, err := r.place()
	if err != nil {
		return nil, err
	}
	if r.minRevision < 0 {
		return nil, cmdutil.Usagef("--min-revision: %d is not a revision; write one such as 42", r.minRevision)
	}
	options := client.Options{URL: to.Server, TLS: to.TLS, UserAgent: "isthmus/" + version.Version, MinRevision: r.minRevision}
	if r.showQuery {
		options.Sent = func(request client.Request) { showQuery(io, request) }
	}
	c, err := client.New(options)
	if err != nil {
		return nil, cmdutil.Usagef("%w (from --server, --tls-ca, --tls-cert, --tls-key, their environment variables, or the context)", err)
	}
	return &Session{
		Client: c, IO: io, Look: output.NewLook(io, r.noColor), Timeout: r.timeout, fixed: r.given.Changed("timeout"),
		Namespace: cmp.Or(to.Namespace, DefaultNamespace),
	}, nil
}

// place is where the hub is: by flag (the context that --context names too), then
// environment, then the current context, then the default.
func (r *Flags) place() (hubContext, error) {
	file, err := readContexts()
	if err != nil {
		return hubContext{}, err
	}
	chosen, err := file.choose(cmp.Or(r.context, os.Getenv("ISTHMUS_CONTEXT")))
	if err != nil {
		return hubContext{}, err
	}
	named, current := hubContext{}, chosen
	if r.context != "" {
		named, current = chosen, hubContext{}
	}
	to := hubContext{
		Server:    cmp.Or(r.server, named.Server, os.Getenv("ISTHMUS_SERVER"), current.Server, defaultServer),
		Namespace: chosen.Namespace,
	}
	var known client.TLS // what belongs to the server that was found
	if to.Server == chosen.Server {
		known = chosen.TLS
	}
	environment := func(name string) string {
		if !strings.HasPrefix(to.Server, "https:") {
			return "" // meant for other servers
		}
		return os.Getenv(name)
	}
	to.TLS = client.TLS{
		CA:   cmp.Or(r.tlsCA, environment("ISTHMUS_TLS_CA"), known.CA),
		Cert: cmp.Or(r.tlsCert, environment("ISTHMUS_TLS_CERT"), known.Cert),
		Key:  cmp.Or(r.tlsKey, environment("ISTHMUS_TLS_KEY"), known.Key),
	}
	return to, nil
}

// AllowFor extends the default of --timeout for manifests of so many bytes.
func (s *Session) AllowFor(manifests int) {
	if !s.fixed {
		s.Timeout = min(s.Timeout+time.Duration(manifests/bytesPerSecond)*time.Second, longest)
	}
}

// Within bounds one request by --timeout.
func (s *Session) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("%w (%s)", cmdutil.ErrTimeout, s.Timeout))
}

// WithHub makes the function of a command that opens a session and bounds it.
func WithHub(r *Flags, io cmdutil.Streams, do func(ctx context.Context, s *Session, args []string) error) func(*cobra.Command,
	[]string) error {
	return WithStream(r, io, func(ctx context.Context, s *Session, args []string) error {
		ctx, cancel := s.Within(ctx)
		defer cancel()
		return do(ctx, s, args)
	})
}

// WithStream is WithHub for a command that takes as long as it takes.
func WithStream(r *Flags, io cmdutil.Streams, do func(ctx context.Context, s *Session, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := r.Open(io)
		if err != nil {
			return err
		}
		defer s.Close()
		return do(cmd.Context(), s, args)
	}
}

// showQuery prints an operation as it can be sent again.
func showQuery(io cmdutil.Streams, request client.Request) {
	_, _ = fmt.Fprintln(io.Err, strings.TrimSpace(request.Query)) // its own error cannot be shown
	if text := output.JSON(request.Variables, ""); text != "null" && text != "{}" {
		_, _ = fmt.Fprintln(io.Err, "# variables: "+text)
	}
}
