package collectors

import (
	"cmp"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/metrics"
)

// mostDrains is how many Drains have metrics of their own.
const mostDrains = 100

// Drains shows what Drains do in the latest snapshot.
type Drains struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	Counts    *metrics.Drains
}

// Measure shows the first Drains by name.
func (d Drains) Measure() {
	var all []metrics.Drain
	for key, does := range federation.DrainsIn(d.Snapshots.Latest()) {
		all = append(all, metrics.Drain{
			Name: key.Name, Percent: int(does.Percent), Services: does.Services, Refused: does.Refused, Endpoints: does.Endpoints,
		})
	}
	slices.SortFunc(all, func(a, b metrics.Drain) int { return cmp.Compare(a.Name, b.Name) })
	d.Counts.Show(all[:min(len(all), mostDrains)])
}
