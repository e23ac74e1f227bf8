// Package hub assembles the server: it joins the rooms, and is the only one that knows them all.
package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/internal/server"
)

// Hub has opened what it needs of this machine, and does not serve yet.
type Hub struct {
	settings     Settings
	log          logging
	dir          *dataDir
	doors        listeners
	certificates *server.Certificates // nil: plaintext
}

// New opens the data folder and the listeners. Running the hub closes them.
func New(s Settings) (_ *Hub, err error) {
	h := &Hub{settings: s, log: openLog(s.Output, s.log)}
	if s.AdoptLog != nil {
		s.AdoptLog(h.log.logger)
	}
	limitMemory(memlimit.FromCgroup, h.log.logger)
	if h.dir, err = openDataDir(s.dataDir); err != nil {
		return nil, err
	}
	if h.doors, err = openListeners(context.Background(), s); err != nil {
		return nil, errors.Join(err, h.dir.close())
	}
	if s.dev {
		return h, nil
	}
	if h.certificates, err = server.OpenCertificates(s.tls, server.CertificateOptions{Logger: h.log.logger}); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *Hub) close() error {
	h.doors.close()
	return h.dir.close()
}

// Run opens the store, joins the rooms and serves until the context ends. A context
// that ends during the start is no error. A hub runs once.
func (h *Hub) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, h.close()) }()
	s, logger := h.settings, h.log.logger
	store, err := openStore(ctx, s, h.dir, logger)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	keys, err := openKeys(ctx, s, h.dir, store)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	all, err := join(ctx, s, parts{dir: h.dir, doors: h.doors, certificates: h.certificates, store: store, keys: keys, logger: logger, log: h.log})
	if err != nil {
		return err
	}
	logStart(logger, s, h.doors)
	defer logger.Info("the hub stopped")
	if s.dev && s.log.Format == textFormat {
		if err := greet(s.Output, s.facts()); err != nil {
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

func openStore(ctx context.Context, s Settings, dir *dataDir, logger *slog.Logger) (*etcd.Store, error) {
	secure, err := s.etcd.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("etcd.tls: %w", err)
	}
	return etcd.Open(ctx, etcd.Options{
		DataDir: dir.etcd(), Endpoints: s.etcd.Endpoints, TLS: secure, Logger: logger, Quota: s.etcd.QuotaBytes, New: s.newStore,
	})
}
