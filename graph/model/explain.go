package model

import "isthmus.dev/isthmus/federation"

// NewEndpointExplanation explains one endpoint of a service.
func NewEndpointExplanation(service federation.ServiceKey, of federation.Explanation) EndpointExplanation {
	out := EndpointExplanation{
		Endpoint: Endpoint{Source: of.Shard, Of: of.Endpoint, service: service}, Included: of.Included, Via: Via(of.Via),
		Reason: of.Code, DocURL: findingDoc(of.Code), Message: of.Message,
	}
	if of.Cause != (federation.ObjectKey{}) {
		ref := NewObjectRef(of.Cause, 0)
		out.Cause = &ref
	}
	return out
}
