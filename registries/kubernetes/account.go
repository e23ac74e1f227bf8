package kubernetes

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation"
)

// A Service may say as whom its endpoints run, besides the accounts of their pods. Istio's annotations list accounts
// of the Service's namespace, and whole identities.
const (
	annotationAccounts   = "alpha.istio.io/kubernetes-serviceaccounts"
	annotationIdentities = "alpha.istio.io/canonical-serviceaccounts"
	// mostAccounts bounds each of the annotations, in bytes.
	mostAccounts = 16 << 10
)

// accounts are those that the annotations of a Service list: NAMESPACE/NAME, or identities as they stand.
func accounts(namespace string, annotations map[string]string, n *objectProblems) (out []string) {
	take := func(annotation, form string, account func(text string) (string, bool)) {
		field := "metadata.annotations[" + annotation + "]"
		if len(annotations[annotation]) > mostAccounts {
			n.Add(codeAccount, field, "it is longer than %d bytes; it is ignored", mostAccounts)
			return
		}
		for text := range strings.SplitSeq(annotations[annotation], ",") {
			text = strings.TrimSpace(text)
			if text == "" {
				continue
			}
			got, ok := account(text)
			if !ok {
				n.Add(codeAccount, field, "%s is not %s; it is ignored", federation.Quote(text), form)
				continue
			}
			out = append(out, got)
		}
	}
	take(annotationAccounts, "the name of a service account", func(text string) (string, bool) {
		return namespace + "/" + text, len(validation.IsDNS1123Subdomain(text)) == 0
	})
	take(annotationIdentities, "an identity, such as spiffe://cluster.local/ns/shop/sa/web", func(text string) (string, bool) {
		id, err := url.Parse(text)
		return text, err == nil && id.Scheme == "spiffe" && id.Host != "" && id.Path != ""
	})
	slices.Sort(out)
	return slices.Compact(out)
}
