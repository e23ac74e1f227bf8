package kubernetes

import "time"

// absences are the endpoints whose pods the cluster does not show.
type absences struct {
	missing map[key]map[endpointID]absence // by service
	due     map[key]time.Time              // service → when a missing pod becomes a problem
}

// of are those of a service.
func (a absences) of(service key) map[endpointID]absence {
	if a.missing[service] == nil {
		a.missing[service] = map[endpointID]absence{}
	}
	return a.missing[service]
}

// keep replaces what is known of the service's missing pods, and notes when it is to be
// joined again because a pod is missing for too long.
func (a absences) keep(service key, missing map[endpointID]absence, due time.Time) {
	delete(a.missing, service)
	if len(missing) > 0 {
		a.missing[service] = missing
	}
	delete(a.due, service)
	if !due.IsZero() {
		a.due[service] = due
	}
}

// nextDue is when the next service is to be joined again though nothing changed.
func (a absences) nextDue() (at time.Time, ok bool) {
	for _, d := range a.due {
		if !ok || d.Before(at) {
			at, ok = d, true
		}
	}
	return at, ok
}
