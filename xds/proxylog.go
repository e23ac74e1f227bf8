package xds

import (
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/xds/envoy"
)

// The lines of a proxy's life. All proxies may come, go and refuse at once, hence the limits of the log.

func (st *stream) logConnect() {
	st.connected = time.Now()
	st.server.limitedLog.Log(st.client.log, slog.LevelInfo, "proxy connected", slog.String("proxyType", string(st.client.node.Type)),
		slog.String("address", clientaddr.Text(st.client.from.Addr())),
		slog.String("workload", st.client.workload), slog.String("protocol", string(protocolOf(st.wire.delta))),
		slog.String("version", st.client.node.Version))
	if ignored := st.client.node.Ignored; ignored != "" {
		st.server.limitedLog.Log(st.client.log, slog.LevelWarn, "settings of a proxy have no effect", slog.String("settings", ignored))
	}
}

// logEnd writes why a proxy left. At the end of the hub all of them do, and one line of the hub says so.
func (st *stream) logEnd(err error) {
	if st.connected.IsZero() || errors.Is(err, errDraining) {
		return
	}
	attrs := []slog.Attr{slog.Duration("duration", time.Since(st.connected).Round(time.Millisecond))}
	if code := status.FromContextError(err).Code(); err != nil && code != codes.Canceled && status.Code(err) != codes.Canceled {
		attrs = append(attrs, slog.Any("err", err))
	}
	st.server.limitedLog.Log(st.client.log, slog.LevelInfo, "proxy disconnected", attrs...)
}

// noteUntraced tells of parts that the proxy refuses and that no object made: no status of
// an object says so (R05). While it is being found out what else it refuses, nothing is known.
func (st *stream) noteUntraced(kind envoy.Type, now *fleet.Delivery) {
	if now.Searches() {
		return
	}
	known := st.untraced[kind]
	delete(st.untraced, kind)
	for title, text := range now.Untraced() {
		if st.untraced[kind] == nil {
			st.untraced[kind] = map[string]bool{}
		}
		st.untraced[kind][title] = true
		if known[title] {
			continue
		}
		st.server.options.Metrics.Count(UntracedRefusal, kind)
		st.server.limitedLog.Log(st.client.log, slog.LevelWarn, "proxy rejected what no object made", slog.String("type", string(kind)),
			slog.String("name", title), slog.String("err", text))
	}
}

// logNack writes what a proxy refused, and why.
func (st *stream) logNack(kind envoy.Type, f *sentResponse, text string) {
	st.server.limitedLog.Log(st.client.log, slog.LevelWarn, "proxy rejected configuration", slog.String("type", string(kind)),
		slog.Int("resources", len(f.resources)),
		slog.String("err", reasonOf(text)))
}
