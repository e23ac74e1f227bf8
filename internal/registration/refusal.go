package registration

import (
	"fmt"

	"isthmus.dev/isthmus/internal/text"
)

// Reason says why a proxy is not registered.
type Reason string

// The reasons.
const (
	NoGroup       Reason = "no_group"
	NoEntry       Reason = "no_entry"
	OtherIdentity Reason = "other_identity" // it is not proven to be of the group, or of the WorkloadEntry
	OtherAddress  Reason = "other_address"  // it is not at that of the WorkloadEntry
	Taken         Reason = "taken"          // another proxy is registered by the address, or as the WorkloadEntry's
	TooMany       Reason = "too_many"
	Invalid       Reason = "invalid" // the entry would not be valid
	Failed        Reason = "failed"
)

// Refusal is the error of a proxy that may not register. It is fit for the proxy.
type Refusal struct {
	Reason  Reason
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// mostMessage is how many bytes a message has at most: a part is the proxy's own words.
const mostMessage = 512

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{reason, "registering the proxy: " + text.Cut(fmt.Sprintf(format, args...), mostMessage)}
}

func taken(p Proxy, by string) *Refusal {
	if p.Group == "" {
		return refuse(Taken, "another proxy, %q, reports the health of the WorkloadEntry %s: stop that proxy, or correct ISTIO_META_WORKLOAD_ENTRY",
			by, p.workload())
	}
	return refuse(Taken, "the address %s is registered by another proxy, %q: stop that proxy, or correct the address", p.Address, by)
}
