package federation

import "time"

// RampSteps is in how many equal steps the share of a Drain moves during its ramp.
const RampSteps = 20

// Ramp is how the share of a Drain depends on time, and on nothing else: all hubs that have
// the object and the time agree. The first step is at the start, the others are Step apart.
type Ramp struct {
	From, To uint32 // in percent
	Start    time.Time
	Step     time.Duration // between two steps; 0: there is no ramp
}

// RampOf is the ramp of a Drain. One that does not know when it began has ended. That of
// another object takes nothing away.
func RampOf(o *Object) Ramp {
	d, is := o.Spec.(*DrainObject)
	if !is {
		return Ramp{}
	}
	r := Ramp{From: min(d.RampFrom, 100), To: d.Share(), Start: d.RampStart}
	if r.Start.IsZero() {
		r.Start = o.Created
	}
	length, err := time.ParseDuration(d.Ramp)
	if err == nil && length > 0 && !r.Start.IsZero() {
		r.Step = max(length/RampSteps, 1)
	}
	return r
}

// At is the share at that time.
func (r Ramp) At(now time.Time) uint32 {
	steps := int64(r.steps(now))
	from, to := int64(r.From), int64(r.To)
	return uint32(from + (to-from)*steps/RampSteps)
}

// steps is how many steps were taken.
func (r Ramp) steps(now time.Time) int {
	switch {
	case r.Step == 0:
		return RampSteps
	case now.Before(r.Start):
		return 0
	}
	return int(min(now.Sub(r.Start)/r.Step+1, RampSteps))
}

// Next is when the next step is taken; false: all were.
func (r Ramp) Next(now time.Time) (time.Time, bool) {
	taken := r.steps(now)
	return r.Start.Add(time.Duration(taken) * r.Step), taken < RampSteps
}

// End is when the last step is taken; false: there is no ramp.
func (r Ramp) End() (time.Time, bool) {
	return r.Start.Add((RampSteps - 1) * r.Step), r.Step > 0
}

// DrainProgress is what a Drain does at the time of a snapshot.
type DrainProgress struct {
	Percent   uint32 // of requests that go elsewhere now
	Services  int    // that it drains
	Refused   int    // services that it leaves as they are
	Endpoints int    // that get less
}

// DrainsIn are the Drains of the snapshot and what they do, in one pass over the services.
func DrainsIn(s *Snapshot) map[ObjectKey]DrainProgress {
	all := map[ObjectKey]DrainProgress{}
	for o := range s.Objects().Of(DrainKind) {
		all[o.Key] = DrainProgress{Percent: RampOf(o).At(ClockOf(s))}
	}
	if len(all) == 0 {
		return all
	}
	for svc := range s.Services().All() {
		svc.addDrains(all)
	}
	return all
}

// addDrains adds what Drains do to the service.
func (s *Service) addDrains(all map[ObjectKey]DrainProgress) {
	for _, d := range s.Drains {
		of := all[d.Drain]
		if d.Refused == "" {
			of.Services++
		} else {
			of.Refused++
		}
		all[d.Drain] = of
	}
	if len(s.Drains) == 0 {
		return
	}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			if d, drained := s.DrainOf(group.Shard, &group.Endpoints[i]); drained {
				of := all[d.Drain]
				of.Endpoints++
				all[d.Drain] = of
			}
		}
	}
}
