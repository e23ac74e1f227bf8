package consul

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
)

// keep tells what belongs to the services that are kept: they themselves, the services
// that their tags make, and the workloads of their instances.
func (m *model) keep() (services func(federation.ServiceKey) bool, workloads func(federation.WorkloadKey) bool) {
	keys, names := map[federation.ServiceKey]bool{}, map[string]bool{}
	for name := range m.odd {
		if o := m.translations[name]; o.kept {
			keys[o.key], names[url.PathEscape(name)] = true, true
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	services = func(key federation.ServiceKey) bool {
		_, host, _ := strings.Cut(string(key.Hostname), ".")
		return keys[key] || keys[federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: key.Namespace}]
	}
	workloads = func(key federation.WorkloadKey) bool {
		name, _, _ := strings.Cut(key.Name, "/")
		return names[name]
	}
	return services, workloads
}

// ends reports whether a change ends that a service is kept. The model does not know what
// was kept, so that only a full edit takes it away.
func (m *model) ends(set map[string]*translation, gone []string) bool {
	kept := func(name string) bool { return m.translations[name] != nil && m.translations[name].kept }
	for name, o := range set {
		if kept(name) && !o.kept {
			return true
		}
	}
	return slices.ContainsFunc(gone, kept)
}

// unread names the services that cannot be read, for the status; "" where there are none.
func (m *model) unread() string {
	if len(m.odd) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(m.odd))
	shown := make([]string, 0, mostNamed)
	for _, name := range names[:min(len(names), mostNamed)] {
		shown = append(shown, fmt.Sprintf("%s (%s)", plain(name), m.odd[name].msg))
	}
	more := ""
	if rest := len(names) - len(shown); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return fmt.Sprintf("services that cannot be read and stay as they were: %s%s", strings.Join(shown, ", "), more)
}

// failed is how many services cannot be read although Consul proves to be in order.
func (m *model) failed() int {
	n := 0
	for _, odd := range m.odd {
		if odd.cause != nil {
			n++
		}
	}
	return n
}

// spoilt is what was known of a service, with the problem that it cannot be read.
func (s *syncer) spoilt(name string, odd *unreadable) *translation {
	o, known := s.translate.service(name, nil), s.model.translations[name]
	if known != nil {
		*o = *known
	}
	outcome := "what was known of it is kept"
	if known == nil || known.shard == nil {
		outcome = "it stays as it was when the hub last read it, and is not served if that never was"
	}
	o.odd = odd
	o.problems = slices.DeleteFunc(slices.Clone(o.problems),
		func(p federation.Problem) bool { return p.Code == codeUnreadable || p.Code == codeFault })
	o.problems = append(o.problems, federation.Problem{Code: odd.code(), Object: "Service " + plain(name), Message: odd.msg + "; " + outcome})
	return o
}

// reportProblems shows how the services are followed, and which cannot be read. Where reading most of
// them fails, the rest goes on, but the cluster is not up to date.
func (w *watch) reportProblems() {
	phase := federation.Ready
	if w.model.failed() > len(w.services)/2 {
		phase = federation.Stale
	}
	var said []string
	for _, s := range []string{followed(len(w.services), w.rest, w.polls, w.r.o), w.model.unread()} {
		if s != "" {
			said = append(said, s)
		}
	}
	w.status(phase, strings.Join(said, "; "))
}

// followed tells how many services have a long poll; "" where all have one.
func followed(all, rest, polls int, o Options) string {
	if rest == 0 {
		return ""
	}
	within := max(o.SweepEvery, time.Duration(rest)*sweepGap).Round(time.Second)
	message := fmt.Sprintf("%d of %d services followed live, the rest within %s", all-rest, all, max(within, time.Second))
	if polls < o.MaxPolls {
		message += "; consul answered 429 (too many requests)"
	}
	return message
}
