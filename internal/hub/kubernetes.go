package hub

import (
	"context"
	"fmt"
	"net/netip"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/kubernetes"
)

// A review of a token takes two requests. These limits let 1,000 pods that start at once prove themselves within seconds,
// and a flood of tokens cost an API server little.
const (
	reviewQPS   = 400
	reviewBurst = 400
)

// openKubernetes reads the kubeconfig when a registry is made: rotation makes a
// new one when the file has changed.
func openKubernetes(with surroundings, c clusterConfig) opener {
	return with.remember(c.ID, func(known federation.Identity) (registries.Registry, error) {
		data, err := kube.ReadFile(c.Kubernetes.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("kubernetes.kubeconfig: %w", err)
		}
		credentials, err := kube.Parse(data, with.kubeconfigRules(c.Kubernetes.Context))
		if err != nil {
			return nil, fmt.Errorf("kubernetes.kubeconfig: %s: %w", c.Kubernetes.Kubeconfig, err)
		}
		return with.followKubernetes(c, credentials, known)
	})
}

func (s surroundings) kubeconfigRules(context string) kube.ParseOptions {
	return kube.ParseOptions{Context: context, AllowLoopback: s.policy.AllowLoopback}
}

func (s surroundings) followKubernetes(c clusterConfig, credentials *kube.Credentials, known federation.Identity) (registries.Registry, error) {
	client, err := kube.Connect(credentials, kube.ConnectOptions{Allow: s.allow})
	if err != nil {
		return nil, err
	}
	reviewer, err := client.Apart(kube.ConnectOptions{QPS: reviewQPS, Burst: reviewBurst})
	if err != nil {
		return nil, err
	}
	limits := s.limitsOf(c)
	r := kubernetes.New(kubernetes.Options{
		Cluster: c.ID, Network: c.Network, Client: client, Expect: known.UID, Logger: s.logger,
		Limits: limits, Used: s.usages.of(c.ID, limits),
		Explain: func(err error) string { return fmt.Sprintf("%s: %s", credentials.Server, kube.Explain(err)) },
	})
	return running{activity: r.Activity, run: func(ctx context.Context, to registries.Sink) error {
		defer client.Close()
		defer s.usages.forget(c.ID)
		defer s.who.attach(c.ID, reviewer, r.Cluster())()
		if c.Kubernetes != nil && c.Kubernetes.Secrets {
			defer s.secrets.Attach(c.ID, r.Cluster())()
		}
		return s.beside(ctx, func(ctx context.Context) {
			if s.remotes != nil && s.holders[c.ID] {
				s.remotes.Follow(ctx, c.ID, r.Cluster())
			}
		}, func(ctx context.Context) error { return r.Run(ctx, to) })
	}}, nil
}

// beside runs the function as long as what follows a cluster. A panic of it is one
// of the registry.
func (s surroundings) beside(ctx context.Context, what func(context.Context), run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan any, 1)
	go func() {
		defer cancel()
		defer func() { ended <- recover() }()
		what(ctx)
		<-ctx.Done()
	}()
	err := run(ctx)
	cancel()
	if p := <-ended; p != nil {
		panic(p)
	}
	return err
}

// allow is the address policy as a check of one connection.
func (s surroundings) allow(to netip.AddrPort) error {
	if why := s.policy.Refuse(to.Addr(), to.Port()); why != "" {
		if to.Addr().IsLoopback() && !s.policy.AllowLoopback {
			why += ", which the hub uses with --dev only"
		}
		return fmt.Errorf("the address %s %s", to, why)
	}
	return nil
}
