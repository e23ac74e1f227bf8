package hub

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/version"
)

// LogConfig is how the hub logs.
type LogConfig struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

const (
	textFormat = "text"
	jsonFormat = "json"
)

// logLevels are the levels by name, from the most to the least.
var logLevels = []struct {
	name  string
	level slog.Level
}{{"debug", slog.LevelDebug}, {"info", slog.LevelInfo}, {"warn", slog.LevelWarn}, {"error", slog.LevelError}}

func logLevelNames() string {
	var names []string
	for _, l := range logLevels {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

func logLevelOf(name string) (slog.Level, bool) {
	for _, l := range logLevels {
		if l.name == name {
			return l.level, true
		}
	}
	return 0, false
}

func logLevelName(level slog.Level) string {
	for _, l := range slices.Backward(logLevels) {
		if level >= l.level {
			return l.name
		}
	}
	return logLevels[0].name
}

func (c LogConfig) check() error {
	if c.Format != textFormat && c.Format != jsonFormat {
		return usagef("--log-format or log.format: %q is not a format; use %s or %s", c.Format, textFormat, jsonFormat)
	}
	if _, known := logLevelOf(c.Level); !known {
		return usagef("--log-level or log.level: %q is not a level; use one of %s", c.Level, logLevelNames())
	}
	return nil
}

// logging is a log whose level can change.
type logging struct {
	level  *slog.LevelVar
	logger *slog.Logger
}

// NewLogger is the log of a program that has no settings yet.
func NewLogger(to io.Writer) *slog.Logger { return openLog(to, LogConfig{}).logger }

// openLog makes the log that the settings ask for; they were checked.
func openLog(to io.Writer, c LogConfig) logging {
	l := logging{level: new(slog.LevelVar)}
	if level, known := logLevelOf(c.Level); known {
		l.level.Set(level)
	}
	options := &slog.HandlerOptions{Level: l.level}
	if c.Format == jsonFormat {
		l.logger = slog.New(slog.NewJSONHandler(to, options))
	} else {
		l.logger = slog.New(slog.NewTextHandler(to, options))
	}
	return l
}

// ServeHTTP shows the level, and with POST changes it, as Envoy's /logging does.
func (l logging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodPost {
		name := r.URL.Query().Get("level")
		level, known := logLevelOf(name)
		if !known {
			http.Error(w, fmt.Sprintf("level: %q is not a level; use one of %s", name, logLevelNames()), http.StatusBadRequest)
			return
		}
		l.change(level, callerOf(r.Context()))
	}
	_, _ = fmt.Fprintln(w, "level: "+logLevelName(l.level.Level())) // the client may have gone
}

// change writes what it does at the level that lets more through.
func (l logging) change(level slog.Level, author string) {
	before := l.level.Level()
	if before > level {
		l.level.Set(level)
	}
	l.logger.Warn("the log level changed", slog.String("logLevel", logLevelName(level)), slog.String("previous", logLevelName(before)), slog.String("author", author))
	l.level.Set(level)
}

// logStart is the first line of a hub: what runs, how, and where.
func logStart(logger *slog.Logger, s Settings, doors listeners) {
	mode, store := "mutual TLS", "embedded etcd"
	if s.dev {
		mode = "dev: plaintext, no authentication"
	}
	if len(s.etcd.Endpoints) > 0 {
		store = strings.Join(s.etcd.Endpoints, ",")
	}
	logger.Info("the hub starts", slog.String("version", version.Version), slog.String("go", runtime.Version()), slog.String("hub", s.clusterID),
		slog.String("mode", mode), slog.String("graphql", doors.graphql.Addr().String()), slog.String("xds", doors.xds.Addr().String()),
		slog.String("health", doors.health.Addr().String()), slog.String("dir", s.dataDir), slog.String("store", store),
		slog.String("logLevel", s.log.Level))
}
