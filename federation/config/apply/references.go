package apply

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// The codes of findings about references are those of Istio's analysers, so that
// what people know of them holds here.
const (
	NotFoundReference = analysis.NotFoundReference
	ConflictingHosts  = analysis.ConflictingHosts
	PortNotHTTP       = analysis.PortNotHTTP
)

// NotEnforced is the code of a finding about a policy that restricts traffic
// according to its own words, and that nothing enforces, or not everywhere.
const NotEnforced = analysis.NotEnforced

// References finds what an object refers to and the snapshot that is read does not have, what
// it says without effect on the services there, and that it is a policy that is not enforced.
// It is not a reason to refuse the object: what is missing may come later. Afterwards the reader
// sees the objects of all clusters.
func References(in *federation.Reader, key federation.ObjectKey) []Finding {
	o, ok := in.For(federation.AnyCluster).Object(key)
	if !ok {
		return nil
	}
	return references(in, o, kind.CheckSpec(key, o.Decoded()))
}

// references is References of an object about whose spec the rules of its kind said that.
func references(in *federation.Reader, o *federation.Object, said []schema.Problem) []Finding {
	r := analysis.Of(o, in)
	for _, p := range said {
		r.Add(string(p.Code), p.Field, "%s", p.Message)
	}
	if why := kind.Unenforced(o); why != "" {
		r.Add(NotEnforced, "spec", "%s", why)
	}
	kind.References(r, o)
	in.For(federation.AnyCluster)
	return r.Findings()
}
