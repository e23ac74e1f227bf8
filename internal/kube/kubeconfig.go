// Package kube decides which kubeconfigs are accepted, creates clients that can reach
// nothing else, describes errors in plain words, and watches a folder of kubeconfigs.
package kube

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// ParseOptions are the hub's side of the kubeconfig policy.
type ParseOptions struct {
	Context       string    // which context to use; empty: the current or the only one
	AllowLoopback bool      // loopback API servers, for --dev only
	Now           time.Time // zero: the present; decides what has expired
}

// Parse rebuilds credentials from the allowed inline fields of a kubeconfig. Every other field, in any entry of the file,
// refuses the whole file (S43, S45). The error is a *Refusal that lists all problems and repeats no value.
func Parse(data []byte, options ParseOptions) (*Credentials, error) {
	if options.Now.IsZero() {
		options.Now = time.Now()
	}
	var found findings
	root := document(data, &found)
	if root == nil {
		return nil, found.err()
	}
	file := readFile(root, &found)
	credentials := file.rebuild(options, &found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return credentials, nil
}

// entry is a named element of clusters, users or contexts.
type entry struct {
	path    string
	fields  map[string]*yaml.Node
	refused bool // it has a forbidden field
}

type kubeconfig struct {
	clusters, users, contexts map[string]entry
	current                   string
	ignored                   []string
}

func readFile(root *yaml.Node, found *findings) *kubeconfig {
	reader := reader{found: found}
	fields := reader.mapping(root, "", placeFile)
	reader.constant(fields["apiVersion"], "apiVersion", "v1")
	reader.constant(fields["kind"], "kind", "Config")
	if node := fields["preferences"]; node != nil && len(node.Content) > 0 {
		found.add(CodeUnknownField, "preferences", adviceMinify)
	}
	file := &kubeconfig{
		clusters: reader.entries(fields["clusters"], "clusters", placeCluster),
		users:    reader.entries(fields["users"], "users", placeUser),
		contexts: reader.entries(fields["contexts"], "contexts", placeContext),
		current:  reader.text(fields["current-context"], "current-context"),
	}
	file.ignored = reader.ignored
	return file
}

// rebuild picks the context and reads the values of its cluster and its user.
func (k *kubeconfig) rebuild(options ParseOptions, found *findings) *Credentials {
	name, context := k.pick(options.Context, found)
	if context == nil {
		return nil
	}
	reader := reader{found: found}
	cluster := k.refer(k.clusters, context, "cluster", found)
	user := k.refer(k.users, context, "user", found)
	credentials := &Credentials{Context: name, Ignored: k.ignored}
	if cluster != nil {
		reader.cluster(*cluster, options, credentials)
	}
	if user != nil {
		reader.user(*user, options, credentials)
	}
	return credentials
}

// pick follows B-K11: the named context, else the current one, else the only one.
func (k *kubeconfig) pick(wanted string, found *findings) (string, *entry) {
	if len(k.contexts) == 0 {
		found.add(CodeContext, "contexts", "the file has no context; add one that joins a cluster and a user")
		return "", nil
	}
	name, field := wanted, "context"
	if name == "" {
		name, field = k.current, "current-context"
	}
	if name == "" && len(k.contexts) == 1 {
		for only := range k.contexts {
			name = only
		}
	}
	if name == "" {
		found.add(CodeContext, "current-context",
			fmt.Sprintf("the file has %d contexts and no current one; name the context to use", len(k.contexts)))
		return "", nil
	}
	context, ok := k.contexts[name]
	if !ok {
		found.add(CodeContext, field, "names a context that is not in the file")
		return "", nil
	}
	return name, &context
}

func (k *kubeconfig) refer(to map[string]entry, context *entry, field string, found *findings) *entry {
	path := context.path + ".context." + field
	node := context.fields[field]
	if node == nil || node.Kind != yaml.ScalarNode || node.Value == "" {
		found.add(CodeMissing, path, "the context must name a "+field)
		return nil
	}
	target, ok := to[node.Value]
	if !ok {
		found.add(CodeReference, path, "names a "+field+" that is not in the file")
		return nil
	}
	return &target
}

func (r *reader) cluster(from entry, options ParseOptions, to *Credentials) {
	path := from.path + ".cluster."
	to.Server = serverURL(r.required(from, "cluster", "server"), path+"server", options.AllowLoopback, r.found)
	if r.truth(from.fields["insecure-skip-tls-verify"], path+"insecure-skip-tls-verify") {
		r.found.add(CodeInsecureTLS, path+"insecure-skip-tls-verify",
			"the server's certificate is always verified; give certificate-authority-data instead")
	}
	if data := r.base64(from, "cluster", "certificate-authority-data"); data != nil {
		to.CA = authority(data, path+"certificate-authority-data", options.Now, r.found)
	}
	if name := r.text(from.fields["tls-server-name"], path+"tls-server-name"); name != "" {
		to.ServerName = serverName(name, path+"tls-server-name", from.fields["certificate-authority-data"] != nil, r.found)
	}
}

func (r *reader) user(from entry, options ParseOptions, to *Credentials) {
	path := from.path + ".user."
	if node := from.fields["token"]; node != nil {
		to.Token, to.Expires = token(r.text(node, path+"token"), path+"token", options.Now, r.found)
	}
	certificate := r.base64(from, "user", "client-certificate-data")
	key := r.base64(from, "user", "client-key-data")
	hasCertificate, hasKey := from.fields["client-certificate-data"] != nil, from.fields["client-key-data"] != nil
	switch {
	case len(from.fields) == 0 && !from.refused:
		r.found.add(CodeNoCredentials, from.path+".user",
			"the user has no credentials; give a token, or client-certificate-data with client-key-data")
	case hasCertificate && !hasKey:
		r.found.add(CodeMissing, path+"client-key-data", "a client certificate needs its key")
	case hasKey && !hasCertificate:
		r.found.add(CodeMissing, path+"client-certificate-data", "a client key needs its certificate")
	case certificate != nil && key != nil:
		pair := clientPair{certificate: certificate, key: key, path: path, now: options.Now}
		pair.read(to, r.found)
	}
}
