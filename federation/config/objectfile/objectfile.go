// Package objectfile keeps on disk the objects that a source read, for a hub that starts while
// what the source reads is away. A file has a record per object.
package objectfile

import (
	"encoding/json"
	"errors"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/recordfile"
)

const (
	bucket = "objects"
	format = 1
)

// At is the file at the path. header names the bucket of its header, and title says in errors
// what the file is.
func At(path, header, title string) recordfile.File {
	return recordfile.File{Path: path, Header: header, Buckets: []string{bucket}, Format: format, Title: title}
}

// Object is what a file has of an object.
type Object struct {
	UID        string          `json:"uid,omitempty"` // as its cluster says; empty where objects have none
	APIVersion string          `json:"apiVersion"`
	Manifest   json.RawMessage `json:"manifest"`
}

// Record is the object as the file has it. The key has no cluster: files are those of one source.
func Record(key federation.ObjectKey, o Object) (recordfile.Record, error) {
	value := map[string]any{"apiVersion": o.APIVersion, "manifest": o.Manifest}
	if o.UID != "" {
		value["uid"] = o.UID
	}
	text, err := schema.JSON(value)
	if err != nil {
		return recordfile.Record{}, fmt.Errorf("writing %s as JSON: %w", key.Title(), err)
	}
	return recordfile.Record{Bucket: bucket, Key: []byte(key.SortKey()), Value: text}, nil
}

// Deleted takes the object out of the file.
func Deleted(key federation.ObjectKey) recordfile.Record {
	return recordfile.Record{Bucket: bucket, Key: []byte(key.SortKey())}
}

// Read is the reverse of Record.
func Read(key, value []byte) (*config.Object, Object, error) {
	var kept Object
	of, err := federation.ParseObjectKey(string(key))
	if err == nil && of.Cluster != "" {
		err = errors.New("it has a cluster")
	}
	if err == nil {
		err = json.Unmarshal(value, &kept)
	}
	if err != nil {
		return nil, kept, fmt.Errorf("reading %q: %w", key, err)
	}
	return &config.Object{Key: of, APIVersion: kept.APIVersion, Manifest: kept.Manifest}, kept, nil
}
