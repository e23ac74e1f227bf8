package etcd

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// aboutListeners is a remark of etcd on the ports of a server that has none here.
const aboutListeners = "Running http and grpc server on single port. This is not recommended for production."

// aboutRetries is what etcd's client logs for each request that fails, whatever
// the reason. The caller says it, too, and a member that is down is named once.
const aboutRetries = "retrying of unary invoker failed"

// noTerm is the error with which etcd remarks, at the first start on an empty
// folder, that its store has no format version yet; it writes one soon after.
const noTerm = "missing term information"

// logCore writes etcd's log through slog: what etcd calls information is for
// debugging here.
type logCore struct{ to slog.Handler }

func newLogger(logger *slog.Logger) *zap.Logger {
	return zap.New(logCore{to: logger.With("component", "etcd").Handler()})
}

func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled is part of zapcore.Core.
func (c logCore) Enabled(l zapcore.Level) bool {
	return c.to.Enabled(context.Background(), levelOf(l))
}

// With is part of zapcore.Core.
func (c logCore) With(fields []zapcore.Field) zapcore.Core {
	return logCore{to: c.to.WithAttrs(attributes(fields))}
}

// Check is part of zapcore.Core.
func (c logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && e.Message != aboutListeners && e.Message != aboutRetries {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write is part of zapcore.Core.
func (c logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if slices.ContainsFunc(fields, isNoTerm) {
		return nil
	}
	r := slog.NewRecord(e.Time, levelOf(e.Level), "etcd: "+strings.TrimSpace(e.Message), 0)
	r.AddAttrs(attributes(fields)...)
	return c.to.Handle(context.Background(), r)
}

func isNoTerm(f zapcore.Field) bool {
	err, is := f.Interface.(error)
	return is && strings.Contains(err.Error(), noTerm)
}

// Sync is part of zapcore.Core.
func (logCore) Sync() error { return nil }

func attributes(fields []zapcore.Field) []slog.Attr {
	encoder := zapcore.NewMapObjectEncoder()
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		f.AddTo(encoder)
		attrs = append(attrs, slog.Any(f.Key, encoder.Fields[f.Key]))
	}
	return attrs
}
