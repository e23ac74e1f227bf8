package transport

import (
	"cmp"
	"time"
)

// Limits stand before every execution. A zero field means its default.
type Limits struct {
	Body               int64 // Bytes of a request body, and of the document of a larger one.
	LargeBody          int64 // Bytes of the body of a mutation, whose variables may hold manifests.
	LargeBodies        int   // Bodies above Body that are held at the same time; of one caller half of them.
	Values             int   // JSON values of a request body; each takes much more memory than text.
	Held               int64 // Bytes of requests and answers that are in memory while clients send or read them.
	HeldPerCaller      int64 // Of these, of one caller.
	QueryString        int   // Bytes of the query string of a GET.
	Tokens             int   // Lexical tokens of a document.
	Name               int   // Bytes of a name in a document; errors suggest names like it, which takes time with its length.
	Operations         int   // Operations in a document.
	Fragments          int   // Fragment definitions in a document.
	Depth              int   // Fields inside fields, fragments resolved, introspection apart.
	IntrospectionDepth int   // Fields inside __schema and __type.
	Aliases            int   // Aliased fields in a document.
	RootFields         int   // Fields at the top of an operation, fragments resolved.
	Directives         int   // Directives used in a document.
	Fields             int   // Fields of a document, fragments resolved wherever they are spread.
	// Cost counts the objects that an answer can hold, and what costs as much: a page counts as
	// its size times what is asked of each node.
	Cost              int
	PageDefault       int           // Size of a page that names none.
	PageMax           int           // Largest size of a page.
	ListMax           int           // Items of a list in an argument of a query.
	Time              time.Duration // Until a query is canceled.
	Change            time.Duration // Until a mutation is canceled: it may change much, and wait for proxies.
	InFlight          int           // Operations executed at the same time.
	InFlightPerCaller int           // Of these, of one caller: of one certificate or, without one, of one address.
	Documents         int           // Bytes of documents that are remembered as valid.
}

// DefaultLimits returns the limits that hold where Options name none. Cost lets
// every operation of the public contract pass with pages of 500.
func DefaultLimits() Limits {
	return Limits{
		Body: 1 << 20, LargeBody: 17 << 20, LargeBodies: 2, Values: 50_000, Held: 256 << 20, HeldPerCaller: 64 << 20,
		QueryString: 16 << 10, Tokens: 10_000, Name: 128, Operations: 10, Fragments: 50, Depth: 12,
		IntrospectionDepth: 25, Aliases: 30, RootFields: 20, Directives: 50, Fields: 600, Cost: 16_000,
		PageDefault: 50, PageMax: 500, ListMax: 1000, Time: 10 * time.Second, Change: 2 * time.Minute,
		InFlight: 100, InFlightPerCaller: 50, Documents: 4 << 20,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Body: cmp.Or(l.Body, d.Body), LargeBody: cmp.Or(l.LargeBody, d.LargeBody), LargeBodies: cmp.Or(l.LargeBodies, d.LargeBodies),
		Values: cmp.Or(l.Values, d.Values), Held: cmp.Or(l.Held, d.Held), HeldPerCaller: cmp.Or(l.HeldPerCaller, d.HeldPerCaller),
		QueryString: cmp.Or(l.QueryString, d.QueryString),
		Tokens:      cmp.Or(l.Tokens, d.Tokens), Name: cmp.Or(l.Name, d.Name), Operations: cmp.Or(l.Operations, d.Operations),
		Fragments: cmp.Or(l.Fragments, d.Fragments), Depth: cmp.Or(l.Depth, d.Depth),
		IntrospectionDepth: cmp.Or(l.IntrospectionDepth, d.IntrospectionDepth),
		Aliases:            cmp.Or(l.Aliases, d.Aliases), RootFields: cmp.Or(l.RootFields, d.RootFields),
		Directives: cmp.Or(l.Directives, d.Directives), Fields: cmp.Or(l.Fields, d.Fields),
		Cost: cmp.Or(l.Cost, d.Cost), PageDefault: cmp.Or(l.PageDefault, d.PageDefault),
		PageMax: cmp.Or(l.PageMax, d.PageMax), ListMax: cmp.Or(l.ListMax, d.ListMax),
		Time: cmp.Or(l.Time, d.Time), Change: cmp.Or(l.Change, d.Change),
		InFlight: cmp.Or(l.InFlight, d.InFlight), InFlightPerCaller: cmp.Or(l.InFlightPerCaller, d.InFlightPerCaller),
		Documents: cmp.Or(l.Documents, d.Documents),
	}
}
