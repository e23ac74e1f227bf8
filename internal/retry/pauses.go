package retry

import "time"

// Pauses are those of many things of which each is tried apart. First and Longest are required.
// It is for one goroutine.
type Pauses[K comparable] struct {
	First, Longest time.Duration

	tries map[K]*Backoff
	due   map[K]time.Time // before which a thing is left alone
}

// Next leaves the thing alone for longer than the last time, and returns for how long.
func (p *Pauses[K]) Next(of K) time.Duration {
	if p.tries == nil {
		p.tries = map[K]*Backoff{}
	}
	if p.tries[of] == nil {
		p.tries[of] = &Backoff{First: p.First, Longest: p.Longest}
	}
	pause := p.tries[of].Next()
	p.Until(of, time.Now().Add(pause))
	return pause
}

// Reset makes the next pause of the thing the first one.
func (p *Pauses[K]) Reset(of K) { delete(p.tries, of) }

// Until leaves the thing alone until then.
func (p *Pauses[K]) Until(of K, at time.Time) {
	if p.due == nil {
		p.due = map[K]time.Time{}
	}
	p.due[of] = at
}

// End ends the pause of the thing.
func (p *Pauses[K]) End(of K) { delete(p.due, of) }

// Has reports whether the thing is left alone.
func (p *Pauses[K]) Has(of K, now time.Time) bool { return now.Before(p.due[of]) }

// Wait returns how long it is until a pause ends, at most Longest: 0 when one has ended since the
// last call.
func (p *Pauses[K]) Wait(now time.Time) time.Duration {
	wait := p.Longest
	for of, at := range p.due {
		wait = min(wait, max(at.Sub(now), 0))
		if !now.Before(at) {
			delete(p.due, of)
		}
	}
	return wait
}
