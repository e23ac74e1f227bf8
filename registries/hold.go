package registries

import (
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
)

// holdMinimum is the least number of objects of which a loss can be suspicious.
const holdMinimum = 20

// loss counts the objects of one sort that a list lacks.
type loss struct{ lost, of int }

func (l loss) suspicious() bool { return l.of >= holdMinimum && 2*l.lost > l.of }

// agrees reports whether two lists say the same, also where they are small: what a
// suspicious list has left is few.
func (l loss) agrees() bool { return 2*l.lost <= max(l.of, holdMinimum) }

// suspicious returns why a full edit must wait for a second proof, or "": it
// would remove more than half of at least 20 services or endpoints. An edit
// that is not full, such as a watch event's, never is.
func suspicious(before, edit federation.Edit) string {
	if !edit.Services.Full {
		return ""
	}
	services, endpoints := losses(before.Services.Set, edit.Services.Set)
	switch {
	case services.suspicious():
		return fmt.Sprintf("the list lacks %d of %d services", services.lost, services.of)
	case endpoints.suspicious():
		return fmt.Sprintf("the list lacks %d of %d endpoints", endpoints.lost, endpoints.of)
	}
	return ""
}

type shards = map[federation.ServiceKey]*federation.Shard

func losses(before, after shards) (services, endpoints loss) {
	services.of = len(before)
	for key, was := range before {
		is := after[key]
		if is == nil {
			services.lost++
			is = &federation.Shard{}
		}
		stays := map[endpointKey]bool{}
		for i := range is.Endpoints {
			stays[endpointKeyOf(&is.Endpoints[i])] = true
		}
		endpoints.of += len(was.Endpoints)
		for i := range was.Endpoints {
			if !stays[endpointKeyOf(&was.Endpoints[i])] {
				endpoints.lost++
			}
		}
	}
	return services, endpoints
}

// socket is what makes an endpoint the same one in two lists.
type endpointKey struct {
	address federation.Address
	network federation.NetworkID
}

func endpointKeyOf(e *federation.Endpoint) endpointKey {
	network := e.Network
	if network == "" {
		network = federation.DefaultNetwork
	}
	return endpointKey{address: e.Address, network: network}
}

// hold is a suspicious list that waits for a second one.
type hold struct {
	edit    federation.Edit
	why     string
	since   time.Time
	release bool // an operator confirmed: the next list is accepted
}

// proves reports whether a later list, suspicious as well, says the same as the held
// one: it came late enough and the two agree.
func (h *hold) proves(edit federation.Edit, now time.Time, after time.Duration) bool {
	if h == nil {
		return false
	}
	services, endpoints := losses(h.edit.Services.Set, edit.Services.Set)
	return h.release || now.Sub(h.since) >= after && services.agrees() && endpoints.agrees()
}

// rest is how long it takes until a second list can prove the held one.
func (h *hold) rest(now time.Time, after time.Duration) time.Duration {
	if h == nil || h.release {
		return 0
	}
	return max(0, after-now.Sub(h.since))
}

func (h *hold) message() string {
	return h.why + "; it is not applied until a second complete list or an operator confirms it"
}
