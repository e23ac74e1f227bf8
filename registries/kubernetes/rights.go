package kubernetes

import (
	"context"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
)

// needed are the kinds that a registry lists and watches in all namespaces.
func needed() []authorization.ResourceAttributes {
	return []authorization.ResourceAttributes{
		{Resource: "services"},
		{Group: "discovery.k8s.io", Resource: "endpointslices"},
		{Resource: "pods"},
		{Resource: "nodes"},
		{Resource: "namespaces", Name: metav1.NamespaceSystem},
	}
}

// rights asks for each needed verb whether it is granted, and whether everything
// is. It reports whether the server said so.
func (s *server) rights(ctx context.Context) bool {
	var missing []string
	for _, of := range needed() {
		for _, verb := range []string{"list", "watch"} {
			of.Verb = verb
			granted, err := s.may(ctx, of)
			if err != nil {
				return s.rightsUnknown(err)
			}
			if !granted {
				missing = append(missing, verb+" "+of.Resource)
			}
		}
	}
	if len(missing) > 0 {
		s.report.Addf(attach.Rights, analysis.Refusal, "%s", denied(missing))
	} else {
		s.report.Addf(attach.Rights, analysis.Info, "the account may list and watch all that is needed")
	}
	wide, err := s.may(ctx, authorization.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})
	switch {
	case err != nil:
		return s.rightsUnknown(err)
	case wide:
		s.report.Addf(attach.RightsTooWide, analysis.Warning,
			"the account may do everything in the cluster; reading is enough: give the hub an account of its own")
	default:
		s.report.Addf(attach.RightsTooWide, analysis.Info, "the account may not do everything")
	}
	return true
}

// rightsUnknown reports that the server does not say what is granted.
func (s *server) rightsUnknown(err error) bool {
	code := attach.Rights
	if kube.Diagnose(err).Trouble == kube.TroubleUnauthorized {
		code = attach.Unauthorized
	}
	s.report.Addf(code, analysis.Refusal, "%s: asking for the rights of the account: %s", s.name, kube.Explain(err))
	return false
}

func (s *server) may(ctx context.Context, what authorization.ResourceAttributes) (bool, error) {
	review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := s.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
