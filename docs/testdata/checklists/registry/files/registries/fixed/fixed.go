// Package fixed is a registry of one service, for the check list.
package fixed

import (
	"context"
	"errors"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// Provider is the provider of its clusters.
const Provider federation.Provider = "Fixed"

// Section is what a cluster says beside what every cluster says.
type Section struct {
	Hostname federation.Hostname `yaml:"hostname" json:"hostname"`
}

// Kind is the kind of registry.
func Kind() provider.Kind {
	return provider.Kind{Provider: Provider, HasSection: true, Open: open, Access: accessOf, Look: look}
}

func open(c provider.Cluster) (registries.Registry, error) {
	section, _ := c.Section.(*Section)
	if section == nil || section.Hostname == "" {
		return nil, errors.New("fixed.hostname is missing")
	}
	return provider.Running{
		Do:     section.run,
		Active: func() (lastEvent, lastSync time.Time) { return time.Time{}, time.Time{} },
	}, nil
}

func accessOf(input map[string]any) (section map[string]any, credentials map[string]string) {
	password, _ := input["password"].(string)
	return map[string]any{"hostname": input["hostname"]}, map[string]string{"password": password}
}

func look(_ context.Context, r attach.Request) attach.Report {
	var report attach.Report
	if r.Credentials.Value("password").Empty() {
		report.Add(attach.Unauthorized, apply.Refusal, "the password is missing")
	}
	return report
}

func (s *Section) run(ctx context.Context, to registries.Sink) error {
	to.Update(federation.Edit{
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: map[federation.ServiceKey]*federation.Shard{
			{Hostname: s.Hostname, Namespace: "default"}: {Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}},
		}},
		Status: &federation.RegistryStatus{Phase: federation.Ready},
	})
	<-ctx.Done()
	return nil
}
