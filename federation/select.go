package federation

import "isthmus.dev/isthmus/internal/smallmap"

// SelectOnPort returns the services that have a TCP-based port of that number and
// match, in the order of their keys. match must look at specs only.
func (r *Reader) SelectOnPort(number uint16, match func(*Service) bool) []*Service {
	smallmap.Add(&r.deps.Ports, number)
	var found []*Service
	for svc := range r.snapshot.services.OnPort(number) {
		if match(svc) {
			r.deps.noteService(svc.Key, ReasonSpec)
			found = append(found, svc)
		}
	}
	return found
}
