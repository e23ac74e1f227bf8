package testbed

import (
	"fmt"
	"net/http"
)

// TokenOptions say which token a service account gets.
type TokenOptions struct {
	Namespace, Account string
	Audience           string // Empty: that of the API server itself.
	Pod                string // To which it is bound, if any; the pod must exist.
	PodUID             string
	Seconds            int // Default 3600; the API server takes 600 and more.
}

// ServiceAccountToken makes the account if it is missing, and a token of it, by
// TokenRequest.
func (k *Kube) ServiceAccountToken(options TokenOptions) string {
	k.t.Helper()
	k.Apply(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", options.Account, options.Namespace))
	spec := fmt.Sprintf(`"expirationSeconds":%d`, max(options.Seconds, 600))
	if options.Seconds == 0 {
		spec = `"expirationSeconds":3600`
	}
	if options.Audience != "" {
		spec += fmt.Sprintf(`,"audiences":[%q]`, options.Audience)
	}
	if options.Pod != "" {
		spec += fmt.Sprintf(`,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":%q,"uid":%q}`, options.Pod, options.PodUID)
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", options.Namespace, options.Account)
	answer := k.Do(http.MethodPost, path, []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{`+spec+`}}`))
	if err := answer.failed(); err != nil {
		k.t.Fatalf("making a token of %s/%s: %v", options.Namespace, options.Account, err)
	}
	var made struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	answer.Decode(k.t, &made)
	return made.Status.Token
}
