// Package hub assembles the server: it joins the rooms, and is the only one that knows them all.
package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"isthmus.dev/isthmus/internal/hub/datadir"
	"isthmus.dev/isthmus/internal/hub/identities"
	"isthmus.dev/isthmus/internal/hub/listeners"
	"isthmus.dev/isthmus/internal/hub/logs"
	"isthmus.dev/isthmus/internal/hub/memory"
	"isthmus.dev/isthmus/internal/hub/settings"
	"isthmus.dev/isthmus/internal/hub/web"
	"isthmus.dev/isthmus/internal/server"
	"isthmus.dev/isthmus/internal/version"
)

// Hub has opened what it needs of this machine, and does not serve yet.
type Hub struct {
	settings     settings.Settings
	log          logs.Log
	dir          *datadir.Dir
	doors        listeners.Listeners
	certificates *server.Certificates // nil: plaintext
	serving      *identities.Serving  // nil: certificates are in files
}

// New opens the data folder and the listeners. Running the hub closes them.
func New(s settings.Settings) (_ *Hub, err error) {
	h := &Hub{settings: s, log: logs.Open(s.Output, s.Log)}
	if s.AdoptLog != nil {
		s.AdoptLog(h.log.Logger)
	}
	memory.Limit(memlimit.FromCgroup, h.log.Logger)
	h.dir, err = datadir.Open(s.DataDir)
	if err != nil {
		return nil, err
	}
	h.doors, err = listeners.Open(context.Background(), s.Addresses, s.Dev)
	if err != nil {
		return nil, errors.Join(err, h.dir.Close())
	}
	if s.Dev {
		return h, nil
	}
	o := server.CertificateOptions{Logger: h.log.Logger}
	if len(s.TLSNames) > 0 {
		h.serving = identities.NewServing(s.TLSNames, h.dir.RootCert(), h.log.Logger)
		o.Issued = h.serving.Certificate
	}
	h.certificates, err = server.OpenCertificates(s.TLS, o)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *Hub) close() error {
	_ = h.doors.Close() // a second close does nothing
	return h.dir.Close()
}

// Run opens the store, joins the rooms and serves until the context ends. A context
// that ends during the start is not an error. A hub runs once.
func (h *Hub) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, h.close()) }()
	s, logger := h.settings, h.log.Logger
	store, err := openStore(ctx, s, h.dir, logger)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	keys, err := openKeys(ctx, s, h.dir, store)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	all, err := h.join(ctx, store, keys)
	if err != nil {
		return err
	}
	h.logStart()
	defer logger.Info("the hub stopped")
	if s.Dev && s.Log.Format == logs.Text {
		if err := web.Greet(s.Output, web.FactsOf(s)); err != nil {
			return err
		}
	}
	return all.run(ctx)
}

// unlessEnded is the error, or none where it is that the context ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tls is nil for plaintext.
func (h *Hub) tls() *tls.Config {
	if h.certificates == nil {
		return nil
	}
	return h.certificates.TLS()
}

func serveHTTP(at net.Listener, handler http.Handler, o server.HTTPOptions) func(context.Context) error {
	return func(ctx context.Context) error { return server.NewHTTP(handler, o).Run(ctx, at) }
}

// logStart is the first line of a hub: what runs, how, and where.
func (h *Hub) logStart() {
	s, mode, store := h.settings, "mutual TLS", "embedded etcd"
	if s.Dev {
		mode = "dev: plaintext, no authentication"
	}
	if len(s.Etcd.Endpoints) > 0 {
		store = strings.Join(s.Etcd.Endpoints, ",")
	}
	h.log.Info("the hub starts", slog.String("version", version.Version), slog.String("go", runtime.Version()),
		slog.String("hub", string(s.ClusterID)),
		slog.String("mode", mode), slog.String("graphql", h.doors.GraphQL.Addr().String()), slog.String("xds", h.doors.XDS.Addr().String()),
		slog.String("health", h.doors.Health.Addr().String()), slog.String("dir", s.DataDir), slog.String("store", store),
		slog.String("logLevel", s.Log.Level))
	for _, u := range s.Unread {
		h.log.Warn("configuration is not read: its source is not in sources", slog.String("field", u.Setting), slog.String("source", u.Source))
	}
}
