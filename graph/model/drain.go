package model

import (
	"time"

	"isthmus.dev/isthmus/federation"
)

// DrainStatus is what a Drain does now. What it drains is asked for when a field needs it.
type DrainStatus struct {
	percent int
	end     *time.Time
	counts  func() federation.DrainProgress
}

// NewDrainStatus shows a Drain of the snapshot; counts says what it drains.
func NewDrainStatus(s *federation.Snapshot, o *federation.Object, counts func() federation.DrainProgress) *DrainStatus {
	r := federation.RampOf(o)
	status := &DrainStatus{percent: int(r.At(federation.ClockOf(s))), counts: counts}
	if end, ramps := r.End(); ramps {
		status.end = &end
	}
	return status
}

// Percent is the share of requests that others get now.
func (d *DrainStatus) Percent() int { return d.percent }

// RampEndsAt is when the last step is taken; nil without a ramp.
func (d *DrainStatus) RampEndsAt() *time.Time { return d.end }

// Services are how many it drains.
func (d *DrainStatus) Services() int { return d.counts().Services }

// RefusedServices are how many it leaves as they are.
func (d *DrainStatus) RefusedServices() int { return d.counts().Refused }

// Endpoints are how many get less now.
func (d *DrainStatus) Endpoints() int { return d.counts().Endpoints }
