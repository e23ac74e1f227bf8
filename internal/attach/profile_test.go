package attach

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// TestG41WhatAClusterProfileMeans: an access provider and a token make a kubeconfig, which
// follows the rules of all kubeconfigs; what is missing has a reason.
func TestG41WhatAClusterProfileMeans(t *testing.T) {
	o := ProfileOptions{Provider: "secretreader", Secret: "{name}-hub"}
	tokens := map[listwatch.Key]profileToken{}
	for name, token := range map[string]string{"c1-hub": "t1", "empty-hub": ""} {
		key := listwatch.Key{Namespace: "fleet", Name: name}
		tokens[key] = profileToken{key, kube.NewSecret(token)}
	}
	access := func(field, provider string, cluster any) map[string]any {
		return map[string]any{field: []any{map[string]any{"name": provider, "cluster": cluster}}}
	}
	server := map[string]any{"server": "https://192.0.2.1:6443", "proxy-url": "", "insecure-skip-tls-verify": false, "extensions": []any{"x"}}
	for name, row := range map[string]struct {
		object string
		status any
		want   string // in the reason, or of the kubeconfig's judgement; empty: it is accepted
	}{
		"version v1alpha2":          {"c1", access("accessProviders", "secretreader", server), ""},
		"version v1alpha1":          {"c1", access("credentialProviders", "secretreader", server), ""},
		"no status":                 {"c1", nil, `no access provider "secretreader"`},
		"another provider":          {"c1", access("accessProviders", "other", server), `no access provider "secretreader"`},
		"no token":                  {"c2", access("accessProviders", "secretreader", server), "no Secret fleet/c2-hub"},
		"an empty token":            {"empty", access("accessProviders", "secretreader", server), `no token in data["token"]`},
		"a status of another form":  {"c1", map[string]any{"accessProviders": []any{"text"}}, "no access provider"},
		"a cluster of another form": {"c1", access("accessProviders", "secretreader", "text"), "server"},
		"a server that is not verified": {"c1", access("accessProviders", "secretreader", map[string]any{
			"server":                   "https://192.0.2.1",
			"insecure-skip-tls-verify": true,
		}), "insecure-skip-tls-verify"},
		"a proxy": {"c1", access("accessProviders", "secretreader", map[string]any{
			"server":    "https://192.0.2.1",
			"proxy-url": "http://p",
		}), "proxy-url"},
		"roots in a file": {"c1", access("accessProviders", "secretreader", map[string]any{
			"server":                "https://192.0.2.1",
			"certificate-authority": "/ca",
		}), "certificate-authority"},
		"plain text, which tokens must not": {
			"c1", access("accessProviders", "secretreader", map[string]any{"server": "http://192.0.2.1"}),
			"server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": row.object, "namespace": "fleet"}}}
			if row.status != nil {
				in.Object["status"] = row.status
			}
			r := o.remote(o.read(in), tokens)
			why := r.Refused
			if why == "" {
				_, err := kube.Parse([]byte(r.Kubeconfig.Reveal()), kube.ParseOptions{})
				if err != nil {
					why = err.Error()
				}
			}
			if row.want == "" && why != "" || !strings.Contains(why, row.want) {
				t.Errorf("it is refused with %q, want %q", why, row.want)
			}
			if strings.Contains(why, base64.StdEncoding.EncodeToString([]byte("t1"))) {
				t.Error("the token is told")
			}
		})
	}
}
