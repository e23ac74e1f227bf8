package validation

import (
	"strings"

	api "istio.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"

	"isthmus.dev/isthmus/federation/config/schema"
)

var proxyConfigRules = []rule[*api.ProxyConfig]{
	{"concurrency", schema.Invalid, func(c *api.ProxyConfig) string { return notNegative(c.GetConcurrency().GetValue()) }},
	{"image.imageType", schema.Invalid, func(c *api.ProxyConfig) string {
		name := c.GetImage().GetImageType()
		return when(strings.ContainsAny(name, " /:@\n"), "%q is not a type of image: write default, distroless or debug", name)
	}},
}

// ProxyConfig checks a spec of the kind.
func ProxyConfig(_ string, c *api.ProxyConfig) []Problem {
	at := spec
	found := apply(at, c, proxyConfigRules)
	found = append(found, optional(at.field("selector"), c.GetSelector(), selector)...)
	return append(found, entries(at.field("environmentVariables"), c.GetEnvironmentVariables(), func(at path, name, _ string) []Problem {
		return invalid(at, when(len(validation.IsEnvVarName(name)) > 0, "%q is not the name of an environment variable", name))
	})...)
}
