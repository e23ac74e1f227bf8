package attach

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
)

// Report is what a look at a cluster found. Its findings have one code each.
type Report struct {
	Findings  []apply.Finding
	UID       string               // see federation.ClusterIdentity; empty: it did not come so far
	Network   federation.NetworkID // that it names itself
	Addresses []netip.Addr         // of workloads, as many as were looked at
	Prefixes  []netip.Prefix       // from which addresses of workloads are given
	Expires   time.Time            // when the credentials end; zero: not known
}

// Looker looks at the cluster of a request without changing anything. It ends
// with the context.
type Looker func(context.Context, Request) Report

// Addf adds a finding.
func (r *Report) Addf(code apply.Code, severity apply.Severity, format string, args ...any) {
	r.Findings = append(r.Findings, apply.Finding{Code: string(code), Severity: severity, Message: fmt.Sprintf(format, args...)})
}

// Add adds a finding whose message is not a format.
func (r *Report) Add(code apply.Code, severity apply.Severity, message string) {
	r.Addf(code, severity, "%s", message)
}

// expirySoon is how long before their end credentials are warned of (S31).
const expirySoon = 14 * 24 * time.Hour

// judge adds what follows from comparing the cluster with the others.
func (r *Report) judge(request Request, known others, now time.Time) {
	if r.UID != "" {
		r.judgeIdentity(request, known)
	}
	r.judgeAddresses(request, known)
	switch {
	case r.Expires.IsZero():
		r.Addf(CredentialsExpiry, apply.Info, "the credentials name no end")
	case r.Expires.Sub(now) < expirySoon:
		r.Addf(CredentialsExpiry, apply.Warning, "the credentials end at %s: rotate them before", r.Expires.UTC().Format(time.RFC3339))
	default:
		r.Addf(CredentialsExpiry, apply.Info, "the credentials are good until %s", r.Expires.UTC().Format(time.RFC3339))
	}
}

// judgeID adds whether the ID can be had; why says why not.
func (r *Report) judgeID(why string) {
	f := apply.Finding{Code: string(DuplicateClusterID), Severity: apply.Refusal, Field: "clusterID", Message: why}
	if why == "" {
		f.Severity, f.Message = apply.Info, "the ID is free"
	}
	r.Findings = append(r.Findings, f)
}

func (r *Report) judgeIdentity(request Request, known others) {
	for id, uid := range known.uids {
		if uid == r.UID && id != request.ID {
			r.Addf(DuplicateCluster, apply.Refusal,
				"this cluster is attached already, as %s: rotate its credentials, or detach it first", id)
			return
		}
	}
	if was := known.uids[request.ID]; was != "" && was != r.UID {
		r.Addf(OtherCluster, apply.Refusal,
			"the credentials are for another cluster than %s: if you rebuilt it, detach %s and attach it again; else attach this one under an ID of its own", request.ID, request.ID)
		return
	}
	r.Addf(DuplicateCluster, apply.Info, "no other ID has this cluster")
}

func (r *Report) judgeAddresses(request Request, known others) {
	network := request.Network
	if network == "" {
		network = r.Network
	}
	if network == "" {
		network = federation.DefaultNetwork
	}
	at, of, overlap := known.overlap(request.ID, network, r)
	switch overlap {
	case inRange: // B-K20
		r.Addf(NetworkClash, apply.Refusal,
			"the name %s already means another network: the pod ranges of this cluster hold %s, which is a workload of %s there; give this cluster a network of its own", network, at, of)
		return
	case sameAddress:
		r.Addf(AddressOverlap, apply.Warning,
			"workloads of this cluster and of %s have the same addresses on network %s, such as %s: give one of them a network of its own",
			of, network, at)
		return
	}
	r.Addf(AddressOverlap, apply.Info, "no other cluster has its addresses on network %s", network)
}

// refusals are the findings for which the cluster is not attached.
func (r *Report) refusals() []apply.Error {
	var all []apply.Error
	for _, f := range r.Findings {
		if f.Severity == apply.Refusal {
			all = append(all, apply.Error{Code: apply.Code(f.Code), Message: f.Message, Field: f.Field})
		}
	}
	return all
}

// shown are the findings that an answer has: of a dry run all, else what is worth
// a warning.
func (r *Report) shown(dryRun bool) []apply.Finding {
	var all []apply.Finding
	for _, f := range r.Findings {
		if dryRun || f.Severity != apply.Info {
			all = append(all, f)
		}
	}
	return all
}
