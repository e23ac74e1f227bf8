package config

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// derivationFault names the objects from which the service is derived: which of them the
// hub panicked over is not known.
func (d *draft) derivationFault(key federation.ServiceKey, cause any) []federation.Problem {
	service := key.Title()
	var from []string
	d.entries.WalkPrefix(memberSortKey(key, ""), func(at string, _ *external.Reading) bool {
		from = append(from, title(federation.ObjectKey{
			Kind: federation.ServiceEntryKind.Name, Namespace: key.Namespace,
			Name: at[strings.LastIndex(at, nul)+1:],
		}))
		return false
	})
	for _, b := range members(&d.bindings, key) {
		from = append(from, title(b.Object.Key))
	}
	if len(from) == 0 {
		from = []string{service}
	}
	d.base.options.log().Error("leaving a service as it was: the hub panicked over it", slog.String("name", service),
		slog.String("object", strings.Join(from, ", ")),
		slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
	problems := make([]federation.Problem, len(from))
	for i, object := range from {
		problems[i] = federation.Problem{Code: codeFault, Object: object, Message: fmt.Sprintf(
			"the hub cannot derive %s from this object, which is a fault of the hub: the service stays as it was; report it with the stack in the hub's log (%.200v)", service, cause)}
	}
	return problems
}
