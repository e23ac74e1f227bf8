package model

// Rollout is how far a change is with the proxies that it concerns.
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

// ConfigObjectStatus is what became of an object in the mesh. Delivery is nil
// where that is not known.
type ConfigObjectStatus struct {
	Delivery    *Rollout
	NotHonoured []NotHonoured
	Findings    []Finding
}

// Delivered is to how many proxies what was made of it was sent.
func (s ConfigObjectStatus) Delivered() *int {
	if s.Delivery == nil {
		return nil
	}
	return &s.Delivery.Delivered
}

// Acked is how many proxies took what was made of it.
func (s ConfigObjectStatus) Acked() *int {
	if s.Delivery == nil {
		return nil
	}
	return &s.Delivery.Acked
}

// Rejected is how many proxies refused what was made of it.
func (s ConfigObjectStatus) Rejected() *int {
	if s.Delivery == nil {
		return nil
	}
	return &s.Delivery.Rejected
}

// Pending is how many proxies have not answered yet.
func (s ConfigObjectStatus) Pending() *int {
	if s.Delivery == nil {
		return nil
	}
	waiting := s.Delivery.Pending + s.Delivery.Delivered - s.Delivery.Acked - s.Delivery.Rejected
	return &waiting
}
