package istiodebug

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// adder takes a part of a page; of an object, under a key. Its error ends the page.
type adder func(key string, part any) error

// page is one answer in JSON: a list, or an object.
type page struct {
	name   string
	object bool
	each   func(*Debug, adder) error
}

// pages are all, by name. A page about one proxy is about the given one.
func pages(proxy string) []page {
	return []page{
		{name: "clusterz", each: (*Debug).clusters},
		{name: "config_dump", object: true, each: func(d *Debug, add adder) error { return d.configuration(proxy, add) }},
		{name: "endpointz", object: true, each: (*Debug).endpoints},
		{name: "list", each: (*Debug).names},
		{name: "registryz", each: (*Debug).services},
		{name: "syncz", each: (*Debug).proxies},
	}
}

// ErrNoPage is the error of an unknown name. istioctl looks for this text.
var ErrNoPage = errors.New("404 page not found")

// Page returns the page of that name. What follows a question mark is a query: proxyID names
// a proxy, and all else is ignored.
func (d *Debug) Page(name string) ([]byte, error) {
	name, query, _ := strings.Cut(name, "?")
	asked, err := url.ParseQuery(query)
	if err != nil {
		return nil, ErrNoPage
	}
	for _, p := range pages(asked.Get("proxyID")) {
		if p.name == name {
			return p.write(d)
		}
	}
	return nil, ErrNoPage
}

// Version is the version of the hub as istiod writes its own: VERSION-COMMIT-STATUS.
func (d *Debug) Version() string {
	return strings.Join([]string{d.o.Build.Version, cmp.Or(d.o.Build.Revision, "unknown"), buildStatus}, "-")
}

func (p page) write(d *Debug) ([]byte, error) {
	brackets := "[]"
	if p.object {
		brackets = "{}"
	}
	var out bytes.Buffer
	out.WriteByte(brackets[0])
	err := p.each(d, func(key string, part any) error {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		if p.object {
			name, err := json.Marshal(key)
			if err != nil {
				return err
			}
			out.Write(append(name, ':'))
		}
		text, err := json.Marshal(part)
		if err != nil {
			return err
		}
		if out.Len()+len(text) > maxBytes {
			return TooLargeError{"/debug/" + p.name}
		}
		out.Write(text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.WriteByte(brackets[1])
	return out.Bytes(), nil
}

// names lists the other pages.
func (d *Debug) names(add adder) error {
	for _, p := range pages("") {
		if p.name == "list" {
			continue
		}
		if err := add("", p.name); err != nil {
			return err
		}
	}
	return nil
}

// proxyPage is a proxy as Istio's syncz shows it.
type proxyPage struct {
	Cluster      federation.ClusterID `json:"cluster_id"`
	Proxy        string               `json:"proxy"`
	NodeID       string               `json:"node_id"`
	Type         string               `json:"proxy_type,omitempty"`
	Version      string               `json:"proxy_version,omitempty"`
	IstioVersion string               `json:"istio_version,omitempty"`
	Resources    map[string]typePage  `json:"resources"`
}

// typePage is a type of resources of a proxy.
type typePage struct {
	Sent      string    `json:"sent,omitempty"`
	Acked     string    `json:"acked,omitempty"`
	Since     time.Time `json:"sentTime"`
	LastError string    `json:"lastError,omitempty"`
}

func (d *Debug) proxies(add adder) error {
	for p := range d.o.Fleet.Latest().Proxies() {
		one := proxyPage{
			Cluster: p.Cluster, Proxy: Name(p.NodeID), NodeID: p.NodeID, Type: p.Type, Version: p.Version, IstioVersion: p.MeshVersion,
			Resources: map[string]typePage{},
		}
		for typeURL, sync := range p.Sync {
			if sync.State != fleet.NotRequested {
				one.Resources[typeURL] = typePage{sync.VersionSent, sync.VersionAcked, sync.Since, sync.LastError}
			}
		}
		if err := add("", one); err != nil {
			return err
		}
	}
	return nil
}
