package output

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	kubejson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/client"
)

// OrNil is nil for an empty text.
func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Moment is a time as commands write it; empty for nil.
func Moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// TypeName is the last part of a type URL, such as Cluster.
func TypeName(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }

// Progress prints the progress of an object with proxies.
func Progress(acked, rejected, pending *int) string {
	if acked == nil || rejected == nil || pending == nil {
		return "-"
	}
	all := *acked + *rejected + *pending
	switch {
	case *rejected > 0:
		return fmt.Sprintf("rejected %d/%d", *rejected, all)
	case *pending > 0:
		return fmt.Sprintf("pending %d/%d", *pending, all)
	}
	return fmt.Sprintf("acked %d/%d", *acked, all)
}

// Age is how long ago something was, as kubectl writes it.
func Age(since *time.Time) string {
	if since == nil {
		return "-"
	}
	d := max(time.Since(*since), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// OrDash is "-" for an empty text.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// ShownAs is a thing of the hub's own as -o json writes it: what GraphQL returns for
// it, under a kind and a version.
func ShownAs(kind string, thing any) (map[string]any, error) {
	text, err := json.Marshal(thing)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	var value map[string]any
	if err := kubejson.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	value["apiVersion"], value["kind"] = "hub.isthmus.dev/v1", kind
	return value, nil
}

// RefName is how an object is written: kind.group/namespace/name.
func RefName(r client.Ref) string {
	name := strings.ToLower(r.Kind)
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.Namespace != "" {
		name += "/" + r.Namespace
	}
	return name + "/" + r.Name
}

// RefTitle is the name of an object, with the cluster if it is for the proxies of one alone.
func RefTitle(r client.Ref) string {
	if r.ClusterID == nil {
		return RefName(r)
	}
	return RefName(r) + " of cluster " + *r.ClusterID
}

// OrEmpty is empty for nil.
func OrEmpty(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}

// Did is what a request does to an object, as kubectl says it.
func Did(action client.ChangeAction) string {
	switch action {
	case client.ChangeActionCreate:
		return "created"
	case client.ChangeActionUpdate:
		return "configured"
	case client.ChangeActionDelete:
		return "deleted"
	}
	return "unchanged"
}

// Counted is a number of things, such as "2 problems".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
