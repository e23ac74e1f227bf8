package main

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/client"
)

func describeService(ctx context.Context, s *session, t target, n named) error {
	n, err := fullName(ctx, s, t, n)
	if err != nil {
		return err
	}
	answer, err := client.ServiceDetails(ctx, s, n.name, &n.namespace)
	if err != nil {
		return err
	}
	of := answer.Service
	if of == nil {
		return notFound(t, n)
	}
	if err := printLines(s.io.out,
		line{"Hostname", of.Hostname}, line{"Namespace", of.Namespace}, line{"Resolution", string(of.Resolution)},
		line{"Outside", map[bool]string{true: "yes", false: ""}[of.MeshExternal]}, line{"Content hash", of.ContentHash},
		line{"Seen by", strings.Join(of.ExportTo, ", ")}, line{"Accounts", strings.Join(of.ServiceAccounts, ", ")},
	); err != nil {
		return err
	}
	var vips, ports, conflicts, endpoints []string
	for _, v := range of.ClusterVIPs {
		vips = append(vips, v.ClusterID+"  "+strings.Join(v.Addresses, ", "))
	}
	for _, p := range of.Ports {
		ports = append(ports, fmt.Sprintf("%d  %s  %s  in %s", p.Number, p.Protocol, orDash(p.Name), strings.Join(p.ClusterIDs, ", ")))
	}
	for _, c := range of.Conflicts {
		conflicts = append(conflicts, c.Kind+": "+c.Message)
	}
	for _, e := range of.Endpoints.Nodes {
		endpoints = append(endpoints, endpointText(e))
	}
	if more := of.Endpoints.TotalCount - len(of.Endpoints.Nodes); more > 0 {
		endpoints = append(endpoints, fmt.Sprintf("and %d more", more))
	}
	return printParts(s.io.out, []part{{head: "Addresses", lines: vips}, {head: "Ports", lines: ports}, {head: "Conflicts", lines: conflicts}, {head: "Endpoints", lines: endpoints}})
}

func endpointText(e client.EndpointSummary) string {
	var ports []string
	for _, p := range e.Ports {
		ports = append(ports, fmt.Sprint(p.Number))
	}
	text := fmt.Sprintf("%s:%s  %s  cluster %s  network %s  weight %.0f", e.Address, strings.Join(ports, "+"), e.Health, e.ClusterID, e.NetworkID, e.Weight)
	if place := placeText(e.Locality); place != "" {
		text += "  " + place
	}
	if e.Workload != nil {
		text += "  " + *e.Workload
	}
	return text
}

func placeText(at client.EndpointPlace) string {
	return strings.TrimRight(orEmpty(at.Region)+"/"+orEmpty(at.Zone)+"/"+orEmpty(at.SubZone), "/")
}

func describeCluster(ctx context.Context, s *session, t target, n named) error {
	answer, err := client.ClusterDetails(ctx, s, n.name)
	if err != nil {
		return err
	}
	of := answer.Cluster
	if of == nil {
		return notFound(t, n)
	}
	if err := printLines(s.io.out,
		line{"Cluster", of.ClusterID}, line{"Provider", string(of.Provider)}, line{"Network", of.NetworkID}, line{"Precedence", fmt.Sprint(of.Precedence)},
		line{"Phase", string(of.Status.Phase)}, line{"Since", moment(of.Status.Since)}, line{"Last event", moment(of.Status.LastEventAt)},
		line{"Last sync", moment(of.Status.LastSyncAt)}, line{"Saved state", orEmpty(of.Status.LastKnownGoodAge)}, line{"Message", orEmpty(of.Status.Message)},
		line{"Services", fmt.Sprint(of.Services.TotalCount)}, line{"Endpoints", fmt.Sprint(of.Endpoints.TotalCount)},
		line{"Kept", keptText(of.Status.Usage)},
	); err != nil {
		return err
	}
	var problems []string
	for _, p := range of.Problems.Nodes {
		problems = append(problems, problem{Object: p.Object, Field: orEmpty(p.Field), Code: p.Code, Message: p.Message}.String())
	}
	if more := of.Problems.TotalCount - len(of.Problems.Nodes); more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return printParts(s.io.out, []part{{head: "Problems", lines: problems}})
}

// keptText is what the hub keeps of a cluster, beside its limits.
func keptText(of *client.ClusterUse) string {
	if of == nil {
		return ""
	}
	const mib = 1 << 20
	return fmt.Sprintf("%d of at most %d objects, %.1f of at most %.0f MiB", of.Objects, of.ObjectsLimit, of.Bytes/mib, of.BytesLimit/mib)
}

func describeProxy(ctx context.Context, s *session, t target, n named) error {
	of, err := proxyByName(ctx, s, t, n)
	if err != nil {
		return err
	}
	if err := printLines(s.io.out,
		line{"Node ID", of.NodeID}, line{"Type", string(of.Type)}, line{"Mode", string(of.RouterMode)}, line{"Cluster", orEmpty(of.ClusterID)},
		line{"Network", of.NetworkID}, line{"Namespace", orEmpty(of.Namespace)}, line{"Place", placeText(client.EndpointPlace(of.Locality))},
		line{"Program", orEmpty(of.UserAgent)}, line{"Delivery", string(of.Delivery)}, line{"Connected", moment(&of.ConnectedAt)},
	); err != nil {
		return err
	}
	var types []string
	for _, y := range of.Sync {
		text := fmt.Sprintf("%s  %s  sent %s  acknowledged %s", typeName(y.TypeUrl), y.State, orDash(orEmpty(y.VersionSent)), orDash(orEmpty(y.VersionAcked)))
		if y.LastError != nil {
			text += "  " + *y.LastError
		}
		types = append(types, text)
	}
	return printParts(s.io.out, []part{{head: "Types", lines: types}})
}

func describeNetwork(ctx context.Context, s *session, t target, n named) error {
	answer, err := client.NetworkByID(ctx, s, n.name)
	if err != nil || answer.Network == nil {
		return orNotFound(err, t, n)
	}
	of := answer.Network
	if err := printLines(s.io.out,
		line{"Network", of.NetworkID}, line{"Gated", fmt.Sprint(of.Gated)}, line{"Clusters", strings.Join(of.ClusterIDs, ", ")},
		line{"CIDRs", strings.Join(of.Cidrs, ", ")},
	); err != nil {
		return err
	}
	var gateways, refused []string
	for _, g := range of.Gateways {
		text := g.Address
		for _, h := range g.Health {
			text += fmt.Sprintf("  %s from %s", h.Standing, h.Observer)
		}
		gateways = append(gateways, text)
	}
	for _, r := range of.RefusedGateways {
		refused = append(refused, r.Gateway+": "+r.Why)
	}
	return printParts(s.io.out, []part{{head: "Gateways", lines: gateways}, {head: "Not used", lines: refused}})
}
