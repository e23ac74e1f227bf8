package validation

import (
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// dryRun is the annotation of a policy that is tried out: proxies tell what it would
// refuse, and refuse nothing.
const dryRun = "istio.io/dry-run"

// Metadata checks the metadata of an object whose spec has rules.
func Metadata(key federation.ObjectKey, object map[string]any) []Problem {
	if _, ok := checks[key.Of()]; !ok {
		return nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, is := annotations[dryRun].(string)
	if !is {
		return nil
	}
	at := path("metadata.annotations").entry(dryRun)
	if key.Of() != security("AuthorizationPolicy") {
		return problem(at, schema.Forbidden, when(true, "only an AuthorizationPolicy can be tried out: remove it, or apply with --dry-run=server"))
	}
	spec, _ := object["spec"].(map[string]any)
	action, _ := spec["action"].(string)
	if action != "" && action != "ALLOW" && action != "DENY" {
		return problem(at, schema.Forbidden, when(true, "a policy with action %s cannot be tried out: remove it, or write ALLOW or DENY", action))
	}
	_, err := strconv.ParseBool(value)
	return invalid(at, when(err != nil, "%q is no boolean: write \"true\" or \"false\"", value))
}

// objectName checks names for which a kind has a narrower rule than Kubernetes.
// NAME.NAMESPACE was how a Gateway was named once.
func objectName(key federation.ObjectKey) []Problem {
	narrow := key.Of() == networking("Gateway") && key.Name != ""
	return invalid("metadata.name", when(narrow && !isLabel(key.Name), "%q is not a DNS label: the name of a Gateway has letters, digits and hyphens, no dots, and at most 63 characters", key.Name))
}
