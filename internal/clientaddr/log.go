package clientaddr

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

// Log writes lines that callers provoke. A source gets a few lines of each level, then one every 10 s; all sources
// together have a bound too. The next line of the level says how many were excluded. It is safe for concurrent use.
type Log struct {
	to  *slog.Logger
	now func() time.Time

	mu              sync.Mutex
	warnings, infos budget
}

// budget is that of the lines of a level.
type budget struct {
	all        *rate.Limiter
	sources    map[netip.Prefix]*rate.Limiter
	suppressed int
}

func newBudget() budget {
	return budget{all: rate.NewLimiter(allPerSecond, allBurst), sources: map[netip.Prefix]*rate.Limiter{}}
}

// NewLog writes to the logger.
func NewLog(to *slog.Logger) *Log {
	return &Log{to: to, now: time.Now, warnings: newBudget(), infos: newBudget()}
}

// Warn writes a warning about a caller, or counts it.
func (l *Log) Warn(from netip.Prefix, message string, attrs ...any) {
	l.write(&l.warnings, slog.LevelWarn, from, message, attrs)
}

// Info writes a line about a caller of which nobody has to do anything, or counts it.
func (l *Log) Info(from netip.Prefix, message string, attrs ...any) {
	l.write(&l.infos, slog.LevelInfo, from, message, attrs)
}

func (l *Log) write(of *budget, level slog.Level, from netip.Prefix, message string, attrs []any) {
	suppressed, write := l.take(of, from)
	if !write {
		return
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.to.Log(context.Background(), level, message, attrs...)
}

func (l *Log) take(of *budget, from netip.Prefix) (suppressed int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	own := of.sources[from]
	if own == nil {
		if len(of.sources) >= maxSources {
			clear(of.sources) // the bound of all sources holds meanwhile
		}
		own = rate.NewLimiter(rate.Every(perSourceEvery), perSourceBurst)
		of.sources[from] = own
	}
	if !own.AllowN(now, 1) || !of.all.AllowN(now, 1) {
		of.suppressed++
		return 0, false
	}
	suppressed, of.suppressed = of.suppressed, 0
	return suppressed, true
}
