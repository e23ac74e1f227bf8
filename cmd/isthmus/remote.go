package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/client"
)

const (
	defaultServer  = "http://" + defaultGraphQL
	defaultTimeout = 30 * time.Second
	// defaultNamespace is where objects are looked for when nobody names one, as
	// with kubectl.
	defaultNamespace = "default"
)

// remote are the flags of every command that speaks with a hub.
type remote struct {
	server, context        string
	tlsCA, tlsCert, tlsKey string
	timeout                time.Duration
	minRevision            int64
	showQuery, noColor     bool
}

func (r *remote) bind(f *pflag.FlagSet) { r.bindAs(f, "context") }

// bindAs is bind where the flag --context is another one's.
func (r *remote) bindAs(f *pflag.FlagSet, context string) {
	f.StringVar(&r.server, "server", "", "`URL` of the hub: http://HOST:PORT, https://HOST:PORT or unix:PATH (ISTHMUS_SERVER; default "+defaultServer+")")
	f.StringVar(&r.context, context, "", "`NAME` of a context of the config file (ISTHMUS_CONTEXT)")
	f.StringVar(&r.tlsCA, "tls-ca", "", "`FILE` of the CAs that sign the hub's certificate (ISTHMUS_TLS_CA)")
	f.StringVar(&r.tlsCert, "tls-cert", "", "`FILE` of your certificate (ISTHMUS_TLS_CERT)")
	f.StringVar(&r.tlsKey, "tls-key", "", "`FILE` of its key (ISTHMUS_TLS_KEY)")
	f.DurationVar(&r.timeout, "timeout", defaultTimeout, "how long to wait for the hub, and for proxies with --wait")
	f.Int64Var(&r.minRevision, "min-revision", 0, "`REVISION` of the configuration that the answer must include, as another hub returned it")
	f.BoolVar(&r.showQuery, "show-query", false, "print the GraphQL that is sent to standard error")
	f.BoolVar(&r.noColor, "no-color", false, "print without colours (NO_COLOR)")
}

// session is a command's way to the hub.
type session struct {
	*client.Client
	io        streams
	look      look
	namespace string // of the context, or the default
	timeout   time.Duration
}

// open joins flags, environment and contexts; it opens no connection.
func (r *remote) open(io streams) (*session, error) {
	if r.timeout <= 0 {
		return nil, usagef("--timeout: %s is not a positive duration, such as 30s", r.timeout)
	}
	to, err := r.place()
	if err != nil {
		return nil, err
	}
	if r.minRevision < 0 {
		return nil, usagef("--min-revision: %d is not a revision; write one such as 42", r.minRevision)
	}
	options := client.Options{URL: to.Server, TLS: client.TLS(to.TLS), UserAgent: "isthmus/" + version, MinRevision: r.minRevision}
	if r.showQuery {
		options.Sent = func(request client.Request) { showQuery(io, request) }
	}
	c, err := client.New(options)
	if err != nil {
		return nil, usagef("%w (from --server, --tls-ca, --tls-cert, --tls-key, their environment variables, or the context)", err)
	}
	return &session{
		Client: c, io: io, look: newLook(io, r.noColor), timeout: r.timeout, namespace: cmp.Or(to.Namespace, defaultNamespace),
	}, nil
}

// place is where the hub is: by flag (the context that --context names too), then
// environment, then the current context, then the default.
func (r *remote) place() (hubContext, error) {
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
	var known clientTLSConfig // what belongs to the server that was found
	if to.Server == chosen.Server {
		known = chosen.TLS
	}
	environment := func(name string) string {
		if !strings.HasPrefix(to.Server, "https:") {
			return "" // meant for other servers
		}
		return os.Getenv(name)
	}
	to.TLS = clientTLSConfig{
		CA:   cmp.Or(r.tlsCA, environment("ISTHMUS_TLS_CA"), known.CA),
		Cert: cmp.Or(r.tlsCert, environment("ISTHMUS_TLS_CERT"), known.Cert),
		Key:  cmp.Or(r.tlsKey, environment("ISTHMUS_TLS_KEY"), known.Key),
	}
	return to, nil
}

// errTimeout is that the time of --timeout is over.
var errTimeout = errors.New("no answer in time")

// within bounds one request by --timeout.
func (s *session) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("%w (%s)", errTimeout, s.timeout))
}

// withHub makes the function of a command that opens a session and bounds it.
func withHub(r *remote, io streams, do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return withStream(r, io, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.within(ctx)
		defer cancel()
		return do(ctx, s, args)
	})
}

// withStream is withHub for a command that takes as long as it takes.
func withStream(r *remote, io streams, do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := r.open(io)
		if err != nil {
			return err
		}
		defer s.Close()
		return do(cmd.Context(), s, args)
	}
}

// finish makes a command one of the client's: wrong flags lead to its help.
func finish(cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w%s; see %q", err, flagMeant(cmd, err), cmd.CommandPath()+" --help")
	})
	return cmd
}

// singly refuses flags that are given twice where one value is meant.
func singly(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, many := f.Value.(pflag.SliceValue); !many {
			f.Value = &onceValue{Value: f.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		singly(sub)
	}
}
