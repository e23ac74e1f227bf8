package mcp

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

// The codes of problems beside those of schemas.
const (
	codeUnreachable = "UNREACHABLE"       // the server
	codeUndecodable = "UNDECODABLE"       // a resource is not an object of its kind
	codeTwice       = "DUPLICATE_OBJECT"  // one answer has several objects of one name
	codeLarge       = "OBJECT_TOO_LARGE"  // an object has more bytes than it may have
	codeMany        = "TOO_MANY_OBJECTS"  // an answer has more than is kept of one server
	codeBackwards   = "VERSION_BACKWARDS" // an object has a lower version than it had
	codeKindRefused = "KIND_REFUSED"      // a kind that is to be read, and that is not known or not Istio's
	codeHeld        = "REMOVAL_HELD"      // most objects are missing at once
)

const mostMessage = 1024 // bytes

func message(format string, args ...any) string {
	return text.Cut(fmt.Sprintf(format, args...), mostMessage)
}

// withoutDelta reports whether the error is that of a server without delta xDS.
func withoutDelta(err error) bool { return status.Code(err) == codes.Unimplemented }

// tooLarge reports whether the client refused a message for its size. A server has the same code for other reasons.
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(status.Convert(err).Message(), "received message larger than max")
}

// tooManyPings reports whether the server ended the connection because it permits fewer pings.
func tooManyPings(err error) bool { return strings.Contains(err.Error(), "too_many_pings") }

// complain tells what is wrong, once.
func (s *Source) complain(to config.Sink) {
	all := s.unknownKinds()
	if s.away != nil {
		all = append(all, *s.away)
	}
	for _, t := range s.asked {
		all = append(all, t.problems(s.o)...)
	}
	slices.SortFunc(all, config.Problem.Compare)
	all = config.Shown(all, "objects of "+s.o.Address)
	if s.said != nil && slices.Equal(s.said, all) {
		return
	}
	for _, p := range all {
		if !slices.Contains(s.said, p) {
			s.o.Logger.Warn("objects of a configuration server", "code", p.Code, "object", p.Object, "field", p.Field, "problem", p.Message)
		}
	}
	s.said = append([]config.Problem{}, all...)
	to.Trouble(slices.Clone(all))
}

// unknownKinds are those of the settings that cannot be read.
func (s *Source) unknownKinds() (all []config.Problem) {
	for _, name := range s.o.Kinds {
		if !slices.ContainsFunc(s.asked, func(t *table) bool { return t.kind.String() == name }) {
			all = append(all, config.Problem{Code: codeKindRefused, Field: "mcp.servers.kinds", Object: "server " + s.o.Name, Message: message(
				"%s: the hub does not read this kind from servers; write it as KIND.GROUP, such as VirtualService.networking.istio.io", name)})
		}
	}
	return all
}

func (t *table) problems(o Options) (all []config.Problem) {
	if t.refused != nil {
		all = append(all, *t.refused)
	}
	if len(t.leaving) > 0 {
		all = append(all, config.Problem{Code: codeHeld, Object: t.url, Message: message(
			"%d of %d objects are missing at once; they stay until they have been missing for %v", len(t.leaving), len(t.items), o.Hold)})
	}
	all = append(all, t.unnamed...)
	for name, i := range t.bad {
		fate := "; the object is not used"
		if i.object != nil {
			fate = "; its last valid form stays"
		}
		for _, p := range i.problems {
			p.Object, p.Message = t.keyOf(name).Title(), p.Message+fate
			all = append(all, p)
		}
	}
	return all
}

func cut(s string) string { return text.Cut(s, mostMessage) }
