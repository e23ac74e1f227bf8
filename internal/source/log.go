package source

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of what callers can make the hub log.
const (
	perSourceBurst = 5
	perSourceEvery = 10 * time.Second
	allBurst       = 50
	allPerSecond   = 5
	maxSources     = 4096
)

// Log writes lines that callers provoke. A source gets a few lines, then one every 10 s; all sources together have
// a bound too. The next line that is written says how many were excluded. It is safe for concurrent use.
type Log struct {
	to  *slog.Logger
	now func() time.Time

	mu         sync.Mutex
	all        *rate.Limiter
	sources    map[netip.Prefix]*rate.Limiter
	suppressed int
}

// NewLog writes to the logger.
func NewLog(to *slog.Logger) *Log {
	return &Log{to: to, now: time.Now, all: rate.NewLimiter(allPerSecond, allBurst), sources: map[netip.Prefix]*rate.Limiter{}}
}

// Warn writes a warning about a caller, or counts it.
func (l *Log) Warn(from netip.Prefix, message string, attrs ...any) {
	l.write(slog.LevelWarn, from, message, attrs)
}

// Info writes a line about a caller of which nobody has to do anything, or counts it.
func (l *Log) Info(from netip.Prefix, message string, attrs ...any) {
	l.write(slog.LevelInfo, from, message, attrs)
}

func (l *Log) write(level slog.Level, from netip.Prefix, message string, attrs []any) {
	suppressed, write := l.take(from)
	if !write {
		return
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.to.Log(context.Background(), level, message, attrs...)
}

func (l *Log) take(from netip.Prefix) (suppressed int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	own := l.sources[from]
	if own == nil {
		if len(l.sources) >= maxSources {
			clear(l.sources) // the bound of all sources holds meanwhile
		}
		own = rate.NewLimiter(rate.Every(perSourceEvery), perSourceBurst)
		l.sources[from] = own
	}
	if !own.AllowN(now, 1) || !l.all.AllowN(now, 1) {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
