package route

import (
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// knowsClaims reports whether the rule's proxies know the claims of tokens: gateways for which there is a
// RequestAuthentication do. Otherwise it notes that a match of claims applies to no request.
func (r *Rule) knowsClaims() bool {
	why := "routes that match claims of tokens apply to no request of sidecars: only gateways match claims"
	if len(r.Gateways) > 0 {
		if authentication.VerifiesTokens(r.View) {
			return true
		}
		why = "routes that match claims of tokens apply to no request: no RequestAuthentication is for the proxies of the gateway"
	}
	subject := r.Object.Subject()
	r.View.LeaveOut(resource.Reason{Code: resource.ReasonNoTokens, Cause: subject, Message: subject.Title() + ": " + why})
	return false
}
