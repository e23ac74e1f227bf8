package clientaddr

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"isthmus.dev/isthmus/internal/wake"
)

// Bounds of the lines of a LimitedLog, for each message.
const (
	messageBurst     = 50
	messagePerSecond = 5
	summaryPause     = 10 * time.Second
)

// LimitedLog logs what many may do at once, such as all proxies that connect again after a restart. Of each message a number of
// lines are written; of those that are excluded, Run writes how many there were. It is safe for concurrent use.
type LimitedLog struct {
	to   *slog.Logger
	now  func() time.Time
	late wake.Signal // something was excluded

	mu       sync.Mutex
	messages map[string]*messageLimit
}

type messageLimit struct {
	limit      *rate.Limiter
	level      slog.Level
	suppressed int
}

// NewLimitedLog writes to the logger. Its messages are few fixed ones.
func NewLimitedLog(to *slog.Logger) *LimitedLog {
	return &LimitedLog{to: to, now: time.Now, late: wake.New(), messages: map[string]*messageLimit{}}
}

// Log writes a line to the logger, which may have attributes of its own, or counts it.
func (c *LimitedLog) Log(to *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	if c.take(level, message) {
		to.LogAttrs(context.Background(), level, message, attrs...)
	}
}

func (c *LimitedLog) take(level slog.Level, message string) (write bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.messages[message]
	if m == nil {
		m = &messageLimit{limit: rate.NewLimiter(messagePerSecond, messageBurst), level: level}
		c.messages[message] = m
	}
	if m.limit.AllowN(c.now(), 1) {
		return true
	}
	m.suppressed++
	c.late.Notify()
	return false
}

// Run writes what was excluded, at most every ten seconds and at the end.
func (c *LimitedLog) Run(ctx context.Context) {
	defer c.summarise()
	pause := time.NewTimer(summaryPause)
	defer pause.Stop()
	for {
		select {
		case <-c.late:
		case <-ctx.Done():
			return
		}
		pause.Reset(summaryPause)
		select {
		case <-pause.C:
			c.summarise()
		case <-ctx.Done():
			return
		}
	}
}

func (c *LimitedLog) summarise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for message, m := range c.messages {
		if m.suppressed > 0 {
			c.to.LogAttrs(context.Background(), m.level, message, slog.Int("suppressed", m.suppressed))
			m.suppressed = 0
		}
	}
}
