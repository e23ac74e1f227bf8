package wanted

import (
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// The types of conditions of Istio's kinds that are the hub's.
const (
	reconciled = "Reconciled"
	analyzed   = "PassedAnalysis"
)

const (
	levelError   = "ERROR"
	levelWarning = "WARNING"
)

// ofIstio is the status of an object of one of Istio's kinds.
func ofIstio(m Mesh, o Object) *Status {
	s := &Status{Messages: []Message{}}
	found := findings(m, o)
	var texts []string
	for _, f := range found {
		message := Message{Code: f.Code, Level: levelWarning}
		if f.Error {
			message.Level = levelError
		}
		s.Messages = append(s.Messages, message)
		texts = append(texts, f.text())
	}
	passed := Condition{Type: analyzed, Status: yes, Reason: "NoFindings"}
	if len(found) > 0 {
		passed = Condition{Type: analyzed, Status: no, Reason: "Findings", Message: cut(strings.Join(texts, "; "))}
	}
	s.Conditions = append(taken(m, o), passed)
	return s
}

func (f Finding) text() string {
	if f.Field == "" {
		return fmt.Sprintf("%s: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("%s: %s: %s", f.Code, f.Field, f.Message)
}

// mostFindings bounds the findings of one object in its status.
const mostFindings = 32

func findings(m Mesh, o Object) (all []Finding) {
	for _, p := range o.Invalid {
		all = append(all, Finding{Code: string(p.Code), Field: p.Field, Message: p.Message, Error: true})
	}
	for _, p := range o.Unknown {
		all = append(all, Finding{Code: federation.CodeNotHonoured, Field: p.Field, Message: p.Message})
	}
	if o.Hidden != "" {
		all = append(all, Finding{Code: "HIDDEN_BY", Message: o.Hidden})
	} else {
		all = append(all, m.Findings(o.Key)...)
	}
	if len(all) > mostFindings {
		more := Finding{Code: "MORE_PROBLEMS", Message: fmt.Sprintf("there are %d more findings; isthmus describe shows them",
			len(all)-mostFindings)}
		all = append(all[:mostFindings:mostFindings], more)
	}
	return all
}

// taken is whether proxies have what was made of the object. It does not count them: each
// proxy that comes and goes would be a write.
func taken(m Mesh, o Object) []Condition {
	c := Condition{Type: reconciled, Status: no}
	if o.Hidden != "" || len(o.Invalid) > 0 {
		c.Reason, c.Message = "NotInEffect", "the object is not in effect as it is"
		return []Condition{c}
	}
	d, known := m.Delivered(o.Key)
	switch {
	case !known:
		return nil
	case d.Refused > 0:
		c.Reason, c.Message = "Rejected", "a proxy rejected what was made of the object; isthmus describe names it"
	case d.Waiting > 0:
		c.Reason, c.Message, c.Pending = "Pending", "proxies have not accepted the object yet", true
	default:
		c.Status, c.Reason, c.Message = yes, reconciled, "all proxies of the hub that get the object have accepted it"
	}
	return []Condition{c}
}

// Service is the Service of the gateways that serve Ingresses.
type Service struct{ Namespace, Name string }

// ForIngress is the status of an Ingress that the hub serves.
func ForIngress(r *federation.Reader, cluster federation.ClusterID, at Service) *Status {
	status := &Status{LoadBalancer: []Address{}}
	if _, shard := serviceOf(r, cluster, at.Namespace, at.Name); shard != nil {
		status.LoadBalancer = external(shard)
	}
	return status
}
