package manifest

// origin is the text of a document that has its chunk for itself.
type origin struct {
	document
	limits Limits
}

// Released is the document without what was read of it, which takes many times its
// text, so that Again must read it again. Items of lists, and JSON, stay as they are.
func (d Document) Released() Document {
	if d.from != nil {
		d.Value, d.place = nil, nil
	}
	return d
}

// Again is the document as it was before it was released.
func (d Document) Again() Document {
	if d.Value != nil || d.from == nil {
		return d
	}
	again := d
	p := &parser{file: d.File, limits: d.from.limits, count: d.Index, use: func(read Document) { again = read }}
	p.parse(d.from.document, nil)
	return again
}
