package config

import (
	"strconv"

	"isthmus.dev/isthmus/federation"
)

// setProblem sets the problem of that name in the edit; nil removes it.
func (a *Aggregate) setProblem(edit *federation.Edit, name string, p *Problem) {
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

// setProblems replaces all problems whose names begin so.
func (a *Aggregate) setProblems(edit *federation.Edit, name string, problems []Problem) {
	for i := 0; ; i++ {
		at := name + nul + strconv.Itoa(i)
		if _, had := a.said[at]; !had && i >= len(problems) {
			return
		}
		if i < len(problems) {
			a.setProblem(edit, at, &problems[i])
		} else {
			a.setProblem(edit, at, nil)
		}
	}
}
