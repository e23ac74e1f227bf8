package registration

import (
	"errors"
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
	return &Refusal{reason, text.Cut(fmt.Sprintf(format, args...), mostMessage)}
}

func isRefusal(err error, with Reason) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && refusal.Reason == with
}

// wording is what a proxy does: that of a group registers itself, another reports the health of its WorkloadEntry.
type wording struct{ refused, written, failing, late string }

var (
	registering = wording{
		"registering the proxy: ", "a proxy registered itself", "a proxy cannot be registered now; the hub tries again",
		"a registration ends later than it should: the store does not delete it",
	}
	reporting = wording{
		"reporting health: ", "a proxy reports the health of a WorkloadEntry", "a health report cannot be stored now; the hub tries again",
		"a health report counts longer than it should: the store does not delete it",
	}
)

func words(p Proxy) wording {
	if p.Group == "" {
		return reporting
	}
	return registering
}

func taken(p Proxy, by string) *Refusal {
	if p.Group == "" {
		return refuse(Taken, "another proxy, %q, reports the health of the WorkloadEntry %s: stop that proxy, or correct ISTIO_META_WORKLOAD_ENTRY",
			by, p.workload())
	}
	return refuse(Taken, "the address %s is registered by another proxy, %q: stop that proxy, or correct the address", p.address(), by)
}
