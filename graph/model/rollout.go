package model

// Rollout is the progress of a change with the proxies that it affects.
type Rollout struct {
	Delivered, Acked, Rejected, Pending int
	Reached                             *bool
	All                                 func() []ProxyRollout // In the order of node IDs and clusters, each once.
}

// Affected is the number of proxies that the change concerns.
func (r Rollout) Affected() int { return r.Delivered + r.Pending }

// NewRollout counts the states of the proxies.
func NewRollout(all []ProxyRollout) Rollout {
	r := Rollout{All: func() []ProxyRollout { return all }}
	for _, p := range all {
		switch p.State {
		case RolloutStateDelivered:
			r.Delivered++
		case RolloutStateAcked:
			r.Delivered++
			r.Acked++
		case RolloutStateRejected:
			r.Delivered++
			r.Rejected++
		default:
			r.Pending++
		}
	}
	return r
}

// ConfigObjectStatus is the status of an object in the mesh. Each part is computed
// when a field of an operation asks for it. Delivery is nil where that is not known.
type ConfigObjectStatus struct {
	Delivery    func() *Rollout
	Ignored     func() []NotHonoured
	AllFindings func() []Finding
	Drain       *DrainStatus
}

// NotHonoured are the fields and values that have no effect.
func (s ConfigObjectStatus) NotHonoured() []NotHonoured { return s.Ignored() }

// Findings are notes about it in the current mesh.
func (s ConfigObjectStatus) Findings() []Finding { return s.AllFindings() }

// Delivered is to how many proxies what was made of it was sent.
func (s ConfigObjectStatus) Delivered() *int {
	return s.count(func(d *Rollout) int { return d.Delivered })
}

// Acked is how many proxies took what was made of it.
func (s ConfigObjectStatus) Acked() *int { return s.count(func(d *Rollout) int { return d.Acked }) }

// Rejected is how many proxies refused what was made of it.
func (s ConfigObjectStatus) Rejected() *int {
	return s.count(func(d *Rollout) int { return d.Rejected })
}

// Pending is how many proxies have not answered yet.
func (s ConfigObjectStatus) Pending() *int {
	return s.count(func(d *Rollout) int { return d.Pending + d.Delivered - d.Acked - d.Rejected })
}

func (s ConfigObjectStatus) count(of func(*Rollout) int) *int {
	d := s.Delivery()
	if d == nil {
		return nil
	}
	n := of(d)
	return &n
}
