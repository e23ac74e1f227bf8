package envoyfilter

import (
	"google.golang.org/protobuf/proto"
)

// Outcome is the result of a patch of a resource.
type Outcome struct {
	Patch   Patch
	Matched bool
	Err     error // why it is excluded
}

// Patched returns the resource with the patches applied, which it does not change: the resource
// itself where nothing matches, nil where it is removed. A patch that does not fit is excluded
// alone. What never has an effect has no outcome; Problems tells of it.
func Patched(m proto.Message, patches []Patch) (proto.Message, []Outcome) {
	jobs := readAll(patches)
	if len(jobs) == 0 {
		return m, nil
	}
	if now, outcomes, ok := together(m, jobs); ok {
		return now, outcomes
	}
	return oneByOne(m, jobs, func(Patch, proto.Message, proto.Message) {})
}

func readAll(patches []Patch) []*job {
	var jobs []*job
	for _, p := range patches {
		if j, err := read(p); err == nil {
			j.earlier = jobs
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// together applies all patches and checks the result once, as nearly always nothing is wrong.
func together(m proto.Message, jobs []*job) (proto.Message, []Outcome, bool) {
	now, outcomes, found := proto.Clone(m), make([]Outcome, 0, len(jobs)), false
	for _, j := range jobs {
		if now == nil {
			break
		}
		next, matched, err := j.subject.patch(j, now)
		if err != nil {
			return nil, nil, false
		}
		now, found = next, found || matched
		outcomes = append(outcomes, Outcome{Patch: j.Patch, Matched: matched})
	}
	if !found {
		return m, outcomes, true
	}
	return now, outcomes, growthOf(m).suffices(m, now) && valid(m, now) == nil
}

// oneByOne checks the resource after each patch, and goes on without one that does not fit.
func oneByOne(m proto.Message, jobs []*job, tell func(p Patch, before, after proto.Message)) (proto.Message, []Outcome) {
	now, outcomes, left := m, make([]Outcome, 0, len(jobs)), growthOf(m)
	for _, j := range jobs {
		if now == nil {
			break
		}
		next, matched, err := j.subject.patch(j, proto.Clone(now))
		if matched && err == nil {
			err = valid(m, next)
		}
		if matched && err == nil {
			err = left.take(j, now, next)
		}
		outcomes = append(outcomes, Outcome{j.Patch, matched, err})
		if matched && err == nil {
			tell(j.Patch, now, next)
			now = next
		}
	}
	return now, outcomes
}
