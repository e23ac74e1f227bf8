package apply

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"isthmus.dev/isthmus/federation/config"
)

// maxLogged is how many objects of a change the log names.
const maxLogged = 10

// logChange writes who changed what. The history has all of it.
func (e *Engine) logChange(o Origin, revision int64, changes []Change) {
	var named []string
	n := 0
	for _, c := range changes {
		if c.Action == config.Unchanged {
			continue
		}
		n++
		if n <= maxLogged {
			named = append(named, fmt.Sprintf("%s %s", strings.ToLower(string(c.Action)), c.Key.Title()))
		}
	}
	if n > maxLogged {
		named = append(named, fmt.Sprintf("and %d more", n-maxLogged))
	}
	e.Logger.LogAttrs(context.Background(), slog.LevelInfo, "configuration changed", slog.Int64("revision", revision),
		slog.String("author", o.Author),
		slog.String("manager", o.manager), slog.String("comment", o.Message), slog.Int("objects", n),
		slog.String("changes", strings.Join(named, ", ")))
}
