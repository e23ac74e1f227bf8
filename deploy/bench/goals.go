package main

import (
	"errors"
	"fmt"
)

// goals collects the figures that are above their goals.
type goals struct{ missed []error }

// check says what the goal of a figure is, and notes it if the figure is above it. Chance moves figures by as much as the
// goal allows.
func (g *goals) check(what string, figure, most float64) string {
	if figure <= most {
		return fmt.Sprintf("goal %g", most)
	}
	g.missed = append(g.missed, fmt.Errorf("%s is %.2f, above the goal %g", what, figure, most))
	return fmt.Sprintf("above the goal %g", most)
}

func (g *goals) err() error { return errors.Join(g.missed...) }
