package config

import (
	"strconv"

	"isthmus.dev/isthmus/federation"
)

// say puts the problem under its name into the edit; nil takes it away.
func (a *Aggregate) say(edit *federation.Edit, name string, p *Problem) {
	old, had := a.said[name]
	switch {
	case p == nil && had:
		delete(a.said, name)
		edit.Problems.Gone = append(edit.Problems.Gone, name)
	case p != nil && (!had || old != *p):
		a.said[name] = *p
		if edit.Problems.Set == nil {
			edit.Problems.Set = map[string]federation.Problem{}
		}
		edit.Problems.Set[name] = federation.Problem(*p)
	}
}

// sayAll replaces all problems whose names begin so.
func (a *Aggregate) sayAll(edit *federation.Edit, name string, problems []Problem) {
	for i := 0; ; i++ {
		at := name + nul + strconv.Itoa(i)
		if _, had := a.said[at]; !had && i >= len(problems) {
			return
		}
		if i < len(problems) {
			a.say(edit, at, &problems[i])
		} else {
			a.say(edit, at, nil)
		}
	}
}
