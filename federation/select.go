package federation

// Select returns the services that match, in the order of their keys. Only those
// are noted: match must look at specs only, and a reader that must learn of
// services that match later has to know of them in another way.
func (r *Reader) Select(match func(*Service) bool) []*Service {
	var found []*Service
	for svc := range r.snapshot.Services() {
		if match(svc) {
			r.deps.Services[svc.Key] |= ReasonSpec
			found = append(found, svc)
		}
	}
	return found
}
