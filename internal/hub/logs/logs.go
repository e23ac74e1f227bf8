// Package logs is the log of a hub: its settings, and its level, which can change while it runs.
package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// Config is how the hub logs.
type Config struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// The formats.
const (
	Text = "text"
	json = "json"
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

// Check tells what is wrong with the settings.
func (c Config) Check() error {
	if c.Format != Text && c.Format != json {
		return fmt.Errorf("--log-format or log.format: %q is not a format; use %s or %s", c.Format, Text, json)
	}
	if _, known := logLevelOf(c.Level); !known {
		return fmt.Errorf("--log-level or log.level: %q is not a level; use one of %s", c.Level, logLevelNames())
	}
	return nil
}

// Log is a log whose level can change.
type Log struct {
	*slog.Logger
	level *slog.LevelVar
}

// Open makes the log that the settings ask for; they were checked.
func Open(to io.Writer, c Config) Log {
	l := Log{level: new(slog.LevelVar)}
	if level, known := logLevelOf(c.Level); known {
		l.level.Set(level)
	}
	options := &slog.HandlerOptions{Level: l.level}
	if c.Format == json {
		l.Logger = slog.New(slog.NewJSONHandler(to, options))
	} else {
		l.Logger = slog.New(slog.NewTextHandler(to, options))
	}
	return l
}

// Handler shows the level, and with POST changes it, as Envoy's /logging does. author names
// the caller.
func (l Log) Handler(author func(context.Context) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method == http.MethodPost {
			name := r.URL.Query().Get("level")
			level, known := logLevelOf(name)
			if !known {
				http.Error(w, fmt.Sprintf("level: %q is not a level; use one of %s", name, logLevelNames()), http.StatusBadRequest)
				return
			}
			l.change(level, author(r.Context()))
		}
		_, _ = fmt.Fprintln(w, "level: "+logLevelName(l.level.Level())) // the client may have gone
	}
}

// change writes what it does at the level that lets more through.
func (l Log) change(level slog.Level, author string) {
	before := l.level.Level()
	if before > level {
		l.level.Set(level)
	}
	l.Warn("the log level changed", slog.String("logLevel", logLevelName(level)), slog.String("previous", logLevelName(before)),
		slog.String("author", author))
	l.level.Set(level)
}
