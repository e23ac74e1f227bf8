package access

import (
	"errors"
	"time"

	"isthmus.dev/isthmus/federation"
)

// answer is remembered until its end.
type answer struct {
	cluster federation.ClusterID
	account Account
	refused error
	at      time.Time
	until   time.Time
}

// decide tells what is remembered, and for how long.
func (t *Tokens) decide(found Account, err error) (answer, error) {
	no := refusal{}
	switch {
	case err == nil:
		return answer{account: found, at: t.o.Now(), until: t.o.Now().Add(rememberGood)}, nil
	case errors.As(err, &no):
		return answer{refused: err, at: t.o.Now(), until: t.o.Now().Add(rememberBad)}, nil
	}
	return answer{}, err
}

// remember keeps the answer of a client that is still the cluster's.
func (t *Tokens) remember(q question, a answer, by *attached) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients[a.cluster] != by {
		return
	}
	if len(t.known) >= maxRemembered {
		t.makeRoom()
	}
	t.known[q] = a
}

// newer returns an answer of the same client that was found after what the inquiry saw.
func (t *Tokens) newer(q question, in inquiry) (answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.known[q]
	return a, t.clients[in.cluster] == in.by && a.at.After(in.seen)
}

// makeRoom drops what is over, else anything.
func (t *Tokens) makeRoom() {
	now, dropped := t.o.Now(), false
	for q, a := range t.known {
		if !now.Before(a.until) {
			delete(t.known, q)
			dropped = true
		}
	}
	for q := range t.known {
		if dropped {
			return
		}
		delete(t.known, q)
		dropped = true
	}
}

// isGood reports whether the token was found to be good, and that this still counts.
func (t *Tokens) isGood(cluster federation.ClusterID, token Token) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, is := t.known[ask(cluster, token)]
	return is && known.refused == nil && t.o.Now().Before(known.until)
}
