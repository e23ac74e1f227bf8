package xds

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// HubFault is the code of a reason about an object or a service over which the hub
// panicked, or with which it cannot build something. What was built before stays.
const HubFault = federation.CodeHubFault

// faultSeparator begins the names of faults that are not those of resources; it is in
// the name of no resource.
const faultSeparator = "\x00"

const faultOfNames = faultSeparator + "names of no service"

func faultOfService(key federation.ServiceKey) string {
	return faultSeparator + key.Title()
}

// hooks are what a group tells others. None of them may block.
type hooks struct {
	failed   func(t envoy.Type, name string, err error) // a resource could not be built
	reasoned func(before, now []envoy.Reason)           // a resource has other reasons
	moved    func()                                     // a resource may exist now or not, or be built from something else
	built    func()                                     // one was built
}

// faults are what a group cannot compute, and because of which objects and services.
type faults struct {
	*hooks
	kind  envoy.Type
	known map[string][]envoy.Reason // by what cannot be computed
}

// set replaces the reasons why something cannot be computed. Without reasons, it can.
func (f *faults) set(of string, now []envoy.Reason) {
	before := f.known[of]
	if len(before)+len(now) == 0 {
		return
	}
	f.reasoned(before, now)
	delete(f.known, of)
	if len(now) > 0 {
		f.known[of] = now
	}
}

func (f *faults) clear() {
	for of := range f.known {
		f.set(of, nil)
	}
}

// faulty is the reason with what it says.
func (f *faults) faulty(r envoy.Reason) envoy.Reason {
	r.Code = HubFault
	r.Message = fmt.Sprintf("the hub cannot build %s from this object, which is a fault of the hub: proxies keep what they have; report it with the stack in the hub's log",
		f.kind.Row().Plural)
	return r
}

// accused is the error with the objects and services at fault.
func accused(err error, faults []envoy.Reason) error {
	var titles []string
	for _, r := range faults {
		for _, subject := range subjects(r) {
			titles = append(titles, titleOf(subject))
		}
	}
	if len(titles) == 0 {
		return err
	}
	return fmt.Errorf("because of %s: %w", strings.Join(titles, ", "), err)
}

// titleOf names an object or a service as problems of clusters do.
func titleOf(subject any) string {
	if key, ok := subject.(interface{ Title() string }); ok {
		return key.Title()
	}
	return ""
}

// maxSuspects bounds the objects that are blamed for one failure.
const maxSuspects = 8

// suspects finds the objects without which the computation succeeds, and what was read
// with all of them. It computes again
// about log2(n) times for each of them among n that were read, and only after a failure.
func (f *faults) suspects(s *federation.Snapshot, of string, compute func(*federation.Reader) error) ([]envoy.Reason, federation.Deps) {
	fails := func(hidden map[federation.ObjectKey]bool) (read federation.Deps, failed bool) {
		r := s.ReadWithout(hidden)
		defer func() {
			if recover() != nil {
				read, failed = r.Deps(), true
			}
		}()
		err := compute(r)
		return r.Deps(), err != nil
	}
	read, _ := fails(nil)
	known := map[federation.ObjectKey]bool{}
	for _, r := range f.known[of] {
		known[r.Cause] = true
	}
	if _, still := fails(known); !still && len(known) > 0 {
		return f.known[of], read
	}
	return f.atFault(culpritsAmong(slices.SortedFunc(read.Objects.Keys(), federation.ObjectKey.Compare),
		func(hidden map[federation.ObjectKey]bool) bool {
			_, failed := fails(hidden)
			return failed
		})), read
}

func (f *faults) atFault(objects []federation.ObjectKey) []envoy.Reason {
	var faults []envoy.Reason
	for _, key := range objects {
		faults = append(faults, f.faulty(envoy.Reason{Cause: key}))
	}
	return faults
}

// culpritsAmong are the candidates without which it does not fail; none where it fails
// without all of them.
func culpritsAmong(candidates []federation.ObjectKey, fails func(hidden map[federation.ObjectKey]bool) bool) []federation.ObjectKey {
	var found []federation.ObjectKey
	without := func(n int) map[federation.ObjectKey]bool {
		hidden := map[federation.ObjectKey]bool{}
		for _, key := range slices.Concat(found, candidates[:n]) {
			hidden[key] = true
		}
		return hidden
	}
	for len(found) < maxSuspects && fails(without(0)) {
		if fails(without(len(candidates))) {
			return nil
		}
		n := sort.Search(len(candidates), func(n int) bool { return !fails(without(n)) })
		found = append(found, candidates[n-1])
	}
	return found
}

// Faulty are the objects and services, by title, over which builders panic or with which
// they cannot build something, as far as connected proxies are concerned.
func (s *Server) Faulty() []string { return s.reasons.faulty() }

func (s *reasons) faulty() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var titles []string
	for subject, all := range s.of {
		for r := range all {
			if r.code == HubFault {
				titles = append(titles, titleOf(subject))
				break
			}
		}
	}
	return titles
}
