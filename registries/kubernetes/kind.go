package kubernetes

import (
	"context"
	"fmt"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// Section is what the config file and Cluster objects say of a Kubernetes cluster. An
// object names no file of the hub's machine.
type Section struct {
	Kubeconfig string `yaml:"kubeconfig" json:"-"`
	Context    string `yaml:"context"`
	Secrets    bool   `yaml:"secrets" json:"-"`
	// RootConfigMap has the hub write the roots of the mesh to the cluster's namespaces.
	RootConfigMap RootConfigMap `yaml:"rootConfigMap"`
	// ServiceImports has the hub write a ServiceImport for each exported service.
	ServiceImports bool `yaml:"serviceImports"`
}

// RootConfigMap says which ConfigMaps with the roots of the mesh the hub writes. Empty: none.
type RootConfigMap string

// The values of RootConfigMap.
const (
	CreateRoots    RootConfigMap = "CREATE"    // those that nobody else wrote
	OverwriteRoots RootConfigMap = "OVERWRITE" // all
)

func (r RootConfigMap) check() error {
	switch r {
	case "", CreateRoots, OverwriteRoots:
		return nil
	}
	return fmt.Errorf("kubernetes.rootConfigMap: %q is not known; use CREATE or OVERWRITE, or omit it", string(r))
}

// kubeconfigValue is the name of the kubeconfig among the credentials that are kept.
const kubeconfigValue = "kubeconfig"

// Following is what else follows a cluster while its registry runs.
type Following interface {
	// Attach has tokens of the cluster reviewed and, with secrets, its Secrets read for
	// gateways, until detach is called.
	Attach(id federation.ClusterID, reviewer clients.Interface, cluster *listwatch.Cluster, secrets bool) (detach func())
	// Follow reads what else the cluster has, until the context ends.
	Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster)
	// WriteRoots keeps the ConfigMaps with the roots of the mesh up to date, until the context ends.
	WriteRoots(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster, overwrite bool)
	// WriteImports keeps the ServiceImports of exported services up to date, until the context ends.
	WriteImports(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster)
	// Expires is called with the time at which the kept credentials expire.
	Expires(federation.ClusterID, *kube.Credentials)
}

// Opener makes registries of Kubernetes clusters.
type Opener struct {
	provider.Host
	Following Following
	Trusted   Trusted // nil: trust domains are not compared
}

// Kind is that of Kubernetes clusters.
func (o Opener) Kind() provider.Kind {
	return provider.Kind{
		Provider: federation.Kubernetes, HasSection: true, Identified: true, NeedsCredentials: true,
		File: func(section any) string { return section.(*Section).Kubeconfig },
		Open: o.open, Access: accessOf, Look: o.preflight,
	}
}

// accessOf names the context also where none is given: the one before is another kubeconfig's.
func accessOf(input map[string]any) (section map[string]any, credentials map[string]string) {
	context, _ := input["context"].(string)
	kubeconfig, _ := input[kubeconfigValue].(string)
	return map[string]any{"context": context}, map[string]string{kubeconfigValue: kubeconfig}
}

// open reads the kubeconfig whenever a registry is made: rotation makes a new one when
// the file has changed.
func (o Opener) open(c provider.Cluster) (registries.Registry, error) {
	section, _ := c.Section.(*Section)
	if section == nil {
		section = &Section{}
	}
	if err := section.RootConfigMap.check(); err != nil {
		return nil, err
	}
	if c.Kept != nil {
		credentials, err := kube.Parse([]byte(c.Kept.Value(kubeconfigValue).Reveal()), o.Rules(section.Context))
		if err != nil {
			return nil, fmt.Errorf("its kept %w", err)
		}
		o.Following.Expires(c.ID, credentials)
		return o.Open(c, credentials)
	}
	data, err := kube.ReadFile(section.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubernetes.kubeconfig: %w", err)
	}
	credentials, err := kube.Parse(data, o.Rules(section.Context))
	if err != nil {
		return nil, fmt.Errorf("kubernetes.kubeconfig: %s: %w", section.Kubeconfig, err)
	}
	return o.Open(c, credentials)
}

// Rules are those by which kubeconfigs are read.
func (o Opener) Rules(context string) kube.ParseOptions {
	return kube.ParseOptions{Context: context, AllowLoopback: o.Policy.AllowLoopback}
}

// A review of a token takes two requests. These limits let 1,000 pods that start at once prove themselves within seconds,
// and a flood of tokens cost an API server little.
const (
	reviewQPS   = 400
	reviewBurst = 400
)

// Open makes a registry of the cluster that the credentials lead to.
func (o Opener) Open(c provider.Cluster, credentials *kube.Credentials) (registries.Registry, error) {
	client, err := kube.Connect(credentials, kube.ConnectOptions{Allow: o.Allow})
	if err != nil {
		return nil, err
	}
	reviewer, err := client.Apart(kube.ConnectOptions{QPS: reviewQPS, Burst: reviewBurst})
	if err != nil {
		return nil, err
	}
	custom, err := client.Dynamic()
	if err != nil {
		return nil, err
	}
	r := New(Options{
		Cluster: c.ID, Network: c.Network, Client: client, Dynamic: custom, Expect: c.Known.UID, Logger: o.Logger,
		Limits: c.Limits, Used: o.Used(c.ID, c.Limits),
		Explain: func(err error) string { return fmt.Sprintf("%s: %s", credentials.Server, kube.Explain(err)) },
	})
	section, _ := c.Section.(*Section)
	if section == nil {
		section = &Section{}
	}
	return provider.Running{Active: r.Activity, Do: func(ctx context.Context, to registries.Sink) error {
		defer client.Close()
		defer o.Ended(c.ID)
		defer o.Following.Attach(c.ID, reviewer, r.Cluster(), section.Secrets)()
		return provider.Beside(
			ctx, func(ctx context.Context) { o.follow(ctx, c.ID, r.Cluster(), section) }, func(ctx context.Context) error { return r.Run(ctx, to) },
		)
	}}, nil
}

// follow has all others follow the cluster until the context ends.
func (o Opener) follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster, section *Section) {
	var all sync.WaitGroup
	defer all.Wait()
	if roots := section.RootConfigMap; roots != "" {
		all.Go(func() { o.Following.WriteRoots(ctx, id, cluster, roots == OverwriteRoots) })
	}
	if section.ServiceImports {
		all.Go(func() { o.Following.WriteImports(ctx, id, cluster) })
	}
	o.Following.Follow(ctx, id, cluster)
}
