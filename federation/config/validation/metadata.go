package validation

import (
	"strconv"

	"isthmus.dev/isthmus/federation/config/schema"
)

// dryRun is the annotation of a policy that is tried out: proxies tell what it would
// refuse, and refuse nothing.
const dryRun = "istio.io/dry-run"

// DryRun checks the annotation istio.io/dry-run of an object whose kind allows it or
// not.
func DryRun(object map[string]any, allowed bool) []Problem {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, is := annotations[dryRun].(string)
	if !is {
		return nil
	}
	at := path{name: "metadata.annotations"}.entry(dryRun)
	if !allowed {
		return problem(at, schema.Forbidden, when(true,
			"only an AuthorizationPolicy can be tried out: remove it, or apply with --dry-run=server"))
	}
	spec, _ := object["spec"].(map[string]any)
	action, _ := spec["action"].(string)
	if action != "" && action != "ALLOW" && action != "DENY" {
		return problem(at, schema.Forbidden, when(true, "a policy with action %s cannot be tried out: remove it, or write ALLOW or DENY", action))
	}
	_, err := strconv.ParseBool(value)
	return invalid(at, when(err != nil, "%q is not a boolean: write \"true\" or \"false\"", value))
}

// GatewayName reports what is wrong with the name of a Gateway: NAME.NAMESPACE was how
// a Gateway was named once.
func GatewayName(name string) string {
	return when(!isLabel(name),
		"%q is not a DNS label: the name of a Gateway has letters, digits and hyphens, no dots, and at most 63 characters", name)
}

// Name is the problem that a message about an object's name reports; none without one.
func Name(message string) []Problem { return invalid(path{name: "metadata.name"}, message) }
