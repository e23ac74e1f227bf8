package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mostNamed bounds the services that a status names.
const mostNamed = 5

// named adds to the refusal of a token that may not see everything which of the
// followed services it does not see any more. Consul does not tell.
func (s *syncer) named(ctx context.Context, err error) error {
	var r *refusal
	if !errors.As(err, &r) || !r.blind || len(s.services) == 0 {
		return err
	}
	var seen catalog
	if _, failed := s.r.client.get(ctx, request{kind: CountServices, path: servicesPath, timeout: requestTimeout}, &seen); failed != nil {
		return err
	}
	var hidden []string
	for name := range s.services {
		if _, visible := seen[name]; !visible {
			hidden = append(hidden, name)
		}
	}
	if len(hidden) == 0 {
		return err
	}
	slices.Sort(hidden)
	shown := make([]string, 0, mostNamed)
	for _, name := range hidden[:min(len(hidden), mostNamed)] {
		shown = append(shown, quote(name))
	}
	more := ""
	if rest := len(hidden) - len(shown); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return &refusal{blind: true, msg: fmt.Sprintf("%s; hidden from it: %s%s, of which what was known is kept", r.msg,
		strings.Join(shown, ", "), more)}
}
