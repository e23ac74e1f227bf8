package xds

import (
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// accept handles an ACK of the response with that nonce. An answer to a later
// response is one to all before it, since a client reads them in order.
func (s *subscription) accept(nonce string, now time.Time) (answered *sentResponse) {
	for _, f := range s.responses.answered(nonce) {
		s.client.accept(f)
		answered = f
	}
	if answered == nil {
		return nil
	}
	s.nacked = false
	if len(s.responses.unanswered) == 0 {
		s.proceed(now)
		if s.queue.size() == 0 {
			s.client.dropClaims()
		}
	}
	s.sync.VersionAcked, s.sync.SnapshotAcked = answered.version, answered.snapshot
	if len(s.nacks.barred) == 0 {
		s.sync.LastError = ""
		if len(s.responses.unanswered) == 0 {
			s.sync.State, s.sync.Since = fleet.Synced, now
			s.nacks.repair.end()
		}
	}
	return answered
}

// refuse handles a NACK and prepares the one repair response: the good
// resources of the refused response once more, and for each bad one what the
// client last accepted, or, where resources have parts, some of what is new.
func (s *subscription) refuse(nonce, text string, now time.Time) (answered *sentResponse) {
	var fresh []*resource
	var removed []string
	for _, f := range s.responses.answered(nonce) {
		answered = f
		fresh = append(fresh, f.resources...)
		if !f.repair { // removals are repeated once
			removed = append(removed, f.removed...)
		}
	}
	if answered == nil {
		return nil
	}
	s.nacked, s.refusedAt = true, answered.snapshot
	s.sync.State, s.sync.Since, s.sync.LastError = fleet.Nacked, now, reasonOf(text)
	fresh = slices.DeleteFunc(fresh, func(r *resource) bool { return sameContent(s.client.slots.get(r.name).acked, r) })
	suspects := suspectsAmong(fresh, text)
	whole := suspects
	if s.kind.Has(envoy.InParts) {
		whole = s.nacks.search(suspects, s.sync.LastError, s.client.slots)
		if len(whole) == 0 {
			for _, r := range suspects {
				s.setAside(r, now)
			}
		}
	}
	for _, r := range whole {
		s.nacks.refuse(r, s.sync.LastError)
		s.client.takeBack(r)
		s.queue.enqueue(r.name, trigger{since: now, urgent: true}) // what was sent since may be all that is wanted
	}
	if len(fresh) == 0 && len(removed) == 0 {
		return answered // nothing in it was new: nothing can be repaired
	}
	again := trigger{since: now, urgent: true, resend: true}
	for _, r := range fresh {
		if sent := s.client.slots.get(r.name).sent; sent != nil && sent.hasBody() {
			s.queue.enqueue(r.name, again)
		}
	}
	for _, name := range removed {
		s.queue.enqueue(name, trigger{since: now, urgent: true, tell: true})
	}
	s.repairing, s.reply = true, s.reply || s.whole()
	return answered
}

// forgive ends the refusal where nothing that was refused is wanted any more and
// no answer is due.
func (s *subscription) forgive(now time.Time) {
	if len(s.nacks.barred) == 0 && len(s.responses.unanswered) == 0 {
		s.sync.State, s.sync.LastError, s.sync.Since = fleet.Synced, "", now
	}
}

// setAside puts what the client has in place of the refused resource; what may be
// sent in its stead is decided when the name is looked at.
func (s *subscription) setAside(r *resource, now time.Time) {
	s.nacks.barred[r.name] = rejection{searching: true}
	s.client.takeBack(r)
	s.queue.enqueue(r.name, trigger{since: now, urgent: true})
}

// proceed tries the next of the forms that wait.
func (s *subscription) proceed(now time.Time) bool {
	if !s.nacks.repair.release() {
		return false
	}
	for name := range s.nacks.barred {
		s.queue.enqueue(name, trigger{since: now, urgent: true})
	}
	return true
}

// suspectsAmong are the resources whose names the client's text contains. A text
// that names none of them accuses all.
func suspectsAmong(fresh []*resource, text string) []*resource {
	var named []*resource
	for _, r := range fresh {
		if mentions(text, r.name) {
			named = append(named, r)
		}
	}
	if len(named) == 0 {
		return fresh
	}
	return named
}

// mentions reports whether the text has the name as a whole word.
func mentions(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 || name == "" {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !isNameByte(text[start-1])) && !goesOn(text[end:]) {
			return true
		}
		from = start + 1
	}
}

// goesOn reports whether a name does not end here; a dot may end the sentence.
func goesOn(rest string) bool {
	rest = strings.TrimPrefix(rest, ".")
	return rest != "" && isNameByte(rest[0])
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '|'
}
