package consul

import (
	"context"
	"log/slog"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries/provider"
)

// preflight reads a Consul once as a registry does: what it reports about itself and its first
// list is what there is to know before. What it sees is neither logged nor counted: the
// cluster is not attached.
func (o Opener) preflight(ctx context.Context, r attach.Request) attach.Report {
	o.Logger, o.Count = slog.New(slog.DiscardHandler), func(federation.Provider, federation.ClusterID, string) {}
	o.Used = func(federation.ClusterID, federation.Limits) func(federation.Usage) { return func(federation.Usage) {} }
	o.Ended = func(federation.ClusterID) {}
	var report attach.Report
	section := &Section{}
	section.Address, _ = r.Section["address"].(string)
	section.Datacenter, _ = r.Section["datacenter"].(string)
	registry, err := o.open(provider.Cluster{ID: r.ID, Limits: o.Limits.WithDefaults(), Section: section, Kept: &r.Credentials})
	if err != nil {
		report.Add(attach.InvalidConsul, analysis.Refusal, err.Error())
		return report
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := &firstWord{end: cancel}
	if err := registry.Run(ctx, first); err != nil && first.status.Message == "" {
		first.status.Message = err.Error()
	}
	return first.report()
}

// firstWord follows a registry until it has reported its first list, or that it cannot.
type firstWord struct {
	end    func()
	mu     sync.Mutex
	status federation.RegistryStatus
	list   *federation.Edit
}

// Update is part of registries.Sink.
func (f *firstWord) Update(e federation.Edit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil && e.Services.Full {
		f.list = &e
		f.end()
	}
}

// Status is part of registries.Sink.
func (f *firstWord) Status(s federation.RegistryStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list != nil {
		return
	}
	f.status = s
	if s.Phase == federation.Failed || s.Phase == federation.Stale {
		f.end()
	}
}

func (f *firstWord) report() attach.Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	var r attach.Report
	switch {
	case f.list == nil && f.status.Phase == federation.Failed:
		r.Add(attach.Rights, analysis.Refusal, f.status.Message)
		return r
	case f.list == nil:
		message := f.status.Message
		if f.status.Phase != federation.Stale {
			message = "it was not read within the time of a look: " + message
		}
		r.Add(attach.Reachability, analysis.Refusal, message)
		return r
	}
	r.Add(attach.Reachability, analysis.Info, "Consul answers")
	r.Add(attach.Rights, analysis.Info, "the token may read all that is needed")
	if f.list.Identity != nil {
		r.UID = f.list.Identity.UID
	}
	for _, shard := range f.list.Services.Set {
		for i := range shard.Endpoints {
			if ip, ok := shard.Endpoints[i].Address.IP(); ok {
				r.Addresses = append(r.Addresses, ip)
			}
		}
	}
	return r
}
