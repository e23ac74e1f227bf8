package describe

import (
	"context"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

func describeService(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	n, err := resource.Hostname(ctx, s, t, n)
	if err != nil {
		return err
	}
	answer, err := client.ServiceDetails(ctx, s, n.Name, &n.Namespace)
	if err != nil {
		return err
	}
	of := answer.Service
	if of == nil {
		return resource.NotFound(t, n)
	}
	if err := output.PrintLines(s.IO.Out,
		output.Line{"Hostname", of.Hostname}, output.Line{"Namespace", of.Namespace}, output.Line{"Resolution", string(of.Resolution)},
		output.Line{"Outside", map[bool]string{true: "yes", false: ""}[of.MeshExternal]}, output.Line{"Content hash", of.ContentHash},
		output.Line{"Seen by", strings.Join(of.ExportTo, ", ")}, output.Line{"Accounts", strings.Join(of.ServiceAccounts, ", ")},
	); err != nil {
		return err
	}
	var vips, ports, conflicts, endpoints []string
	for _, v := range of.ClusterVIPs {
		vips = append(vips, v.ClusterID+"  "+strings.Join(v.Addresses, ", "))
	}
	for _, p := range of.Ports {
		ports = append(ports, fmt.Sprintf("%d  %s  %s  in %s", p.Number, p.Protocol, output.OrDash(p.Name), strings.Join(p.ClusterIDs, ", ")))
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
	return output.PrintParts(s.IO.Out, []output.Part{
		{Head: "Addresses", Lines: vips},
		{Head: "Ports", Lines: ports},
		{Head: "Conflicts", Lines: conflicts},
		{Head: "Endpoints", Lines: endpoints},
	})
}

func endpointText(e client.EndpointSummary) string {
	var ports []string
	for _, p := range e.Ports {
		ports = append(ports, fmt.Sprint(p.Number))
	}
	text := fmt.Sprintf("%s:%s  %s  cluster %s  network %s  weight %.0f", e.Address, strings.Join(ports, "+"), e.Health,
		e.ClusterID, e.NetworkID, e.Weight)
	if place := placeText(e.Locality); place != "" {
		text += "  " + place
	}
	if e.Workload != nil {
		text += "  " + *e.Workload
	}
	return text
}

func placeText(at client.EndpointPlace) string {
	return strings.TrimRight(output.OrEmpty(at.Region)+"/"+output.OrEmpty(at.Zone)+"/"+output.OrEmpty(at.SubZone), "/")
}

func describeCluster(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	answer, err := client.ClusterDetails(ctx, s, n.Name)
	if err != nil {
		return err
	}
	of := answer.Cluster
	if of == nil {
		return resource.NotFound(t, n)
	}
	if err := output.PrintLines(s.IO.Out,
		output.Line{"Cluster", of.ClusterID}, output.Line{"Provider", string(of.Provider)}, output.Line{"Network", of.NetworkID},
		output.Line{"Precedence", fmt.Sprint(of.Precedence)},
		output.Line{"Phase", string(of.Status.Phase)}, output.Line{"Since", output.Moment(of.Status.Since)},
		output.Line{"Last event", output.Moment(of.Status.LastEventAt)},
		output.Line{"Last sync", output.Moment(of.Status.LastSyncAt)}, output.Line{"Saved state", output.OrEmpty(of.Status.LastKnownGoodAge)},
		output.Line{"Message", output.OrEmpty(of.Status.Message)},
		output.Line{"Services", fmt.Sprint(of.Services.TotalCount)}, output.Line{"Endpoints", fmt.Sprint(of.Endpoints.TotalCount)},
		output.Line{"Kept", keptText(of.Status.Usage)},
	); err != nil {
		return err
	}
	var problems []string
	for _, p := range of.Problems.Nodes {
		problems = append(problems, output.Problem{Object: p.Object, Field: output.OrEmpty(p.Field), Code: p.Code, Message: p.Message}.String())
	}
	if more := of.Problems.TotalCount - len(of.Problems.Nodes); more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return output.PrintParts(s.IO.Out, []output.Part{{Head: "Problems", Lines: problems}})
}

// keptText is what the hub keeps of a cluster, beside its limits.
func keptText(of *client.ClusterUse) string {
	if of == nil {
		return ""
	}
	const mib = 1 << 20
	return fmt.Sprintf("%d of at most %d objects, %.1f of at most %.0f MiB", of.Objects, of.ObjectsLimit, of.Bytes/mib, of.BytesLimit/mib)
}

// Proxy shows the details of a proxy.
func Proxy(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	of, err := resource.Proxy(ctx, s, t, n)
	if err != nil {
		return err
	}
	if err := output.PrintLines(s.IO.Out,
		output.Line{"Node ID", of.NodeID}, output.Line{"Type", string(of.Type)}, output.Line{"Mode", string(of.RouterMode)},
		output.Line{"Cluster", clusterText(of)},
		output.Line{"Network", of.NetworkID}, output.Line{"Namespace", output.OrEmpty(of.Namespace)},
		output.Line{"Place", placeText(client.EndpointPlace(of.Locality))},
		output.Line{"Program", output.OrEmpty(of.UserAgent)}, output.Line{"Delivery", string(of.Delivery)},
		output.Line{"Connected", output.Moment(&of.ConnectedAt)},
	); err != nil {
		return err
	}
	var types []string
	for _, y := range of.Sync {
		text := fmt.Sprintf("%s  %s  sent %s  acknowledged %s", output.TypeName(y.TypeUrl), y.State, output.OrDash(output.OrEmpty(y.VersionSent)),
			output.OrDash(output.OrEmpty(y.VersionAcked)))
		if y.LastError != nil {
			text += "  " + *y.LastError
		}
		types = append(types, text)
	}
	return output.PrintParts(s.IO.Out, []output.Part{{Head: "Types", Lines: types}})
}

// notAttached is what to do about proxies that name a cluster that the hub does not have.
const notAttached = "is not attached: attach it, or correct CLUSTER_ID of the metadata in the bootstrap"

func clusterText(of client.ProxySummary) string {
	if of.ClusterID == nil || of.Cluster != nil {
		return output.OrEmpty(of.ClusterID)
	}
	return *of.ClusterID + ", which " + notAttached
}

func describeNetwork(ctx context.Context, s *session.Session, t resource.Target, n resource.Name) error {
	answer, err := client.NetworkByID(ctx, s, n.Name)
	if err != nil || answer.Network == nil {
		return resource.OrNotFound(err, t, n)
	}
	of := answer.Network
	if err := output.PrintLines(s.IO.Out,
		output.Line{"Network", of.NetworkID}, output.Line{"Gated", fmt.Sprint(of.Gated)},
		output.Line{"Clusters", strings.Join(of.ClusterIDs, ", ")},
		output.Line{"CIDRs", strings.Join(of.Cidrs, ", ")},
	); err != nil {
		return err
	}
	var gateways, refused []string
	for _, g := range of.Gateways {
		text := g.Address
		for _, h := range g.Health {
			text += fmt.Sprintf("  %s from %s", h.State, h.ObserverNetworkID)
		}
		gateways = append(gateways, text)
	}
	for _, r := range of.RefusedGateways {
		refused = append(refused, r.Gateway+": "+r.Message)
	}
	return output.PrintParts(s.IO.Out, []output.Part{{Head: "Gateways", Lines: gateways}, {Head: "Not used", Lines: refused}})
}
