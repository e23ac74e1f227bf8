package describe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

func statusCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var format string
	var listed bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the status of the hub, its clusters and its proxies", Args: cmdutil.NoArguments,
		Long: `Show the status of the hub: its version, the sources of its configuration, its
clusters and networks, whether proxies have the current resources, and how many
objects have findings. Everything that needs attention is listed at the end.`,
		Example: "  isthmus status\n  isthmus status --findings\n  isthmus status -o json",
	}
	r.Bind(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text, json or yaml")
	cmd.Flags().BoolVar(&listed, "findings", false, "list the findings of all objects")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, _ []string) error {
		o, err := output.ParseFormat(format, "text", "json", "yaml")
		if err != nil {
			return err
		}
		of, err := readStatus(ctx, s)
		if err == nil && listed {
			err = of.listFindings(ctx, s)
		}
		if err != nil {
			return err
		}
		if o.Name == "text" {
			return of.print(io)
		}
		value, err := output.ShownAs("Status", of)
		if err != nil {
			return err
		}
		return o.Print(io.Out, value)
	})
	return cmdutil.Finish(cmd)
}

// hubStatus is what status tells.
type hubStatus struct {
	Version   string                 `json:"version"`
	ClusterID string                 `json:"clusterID"`
	Sources   []string               `json:"sources"`
	Clusters  map[string]int         `json:"clusters"` // by phase
	Networks  []string               `json:"networks"`
	Proxies   map[string]int         `json:"proxies"`  // by state
	Findings  []client.FindingNumber `json:"findings"` // objects by code
	Attention []string               `json:"attention"`
	Listed    []string               `json:"findingTexts,omitempty"` // the findings themselves
}

func readStatus(ctx context.Context, s *session.Session) (hubStatus, error) {
	of := hubStatus{Clusters: map[string]int{}, Proxies: map[string]int{}, Findings: []client.FindingNumber{}, Attention: []string{}}
	hub, err := client.Hub(ctx, s)
	if err != nil {
		return of, err
	}
	of.Version, of.ClusterID = hub.Hub.Version, hub.Hub.ClusterID
	for _, add := range []func(context.Context, *session.Session) error{
		of.addSources, of.addClusters, of.addNetworks, of.addProxies, of.addFindings,
	} {
		if err := add(ctx, s); err != nil {
			return of, err
		}
	}
	return of, nil
}

func (of *hubStatus) addSources(ctx context.Context, s *session.Session) error {
	answer, err := client.Sources(ctx, s)
	if err != nil {
		return err
	}
	for _, source := range answer.ConfigSources {
		of.Sources = append(of.Sources, source.Name+" at revision "+output.OrDash(output.OrEmpty(source.Revision)))
		for _, problem := range output.SourceProblems(source, len(source.Problems)) {
			of.Attention = append(of.Attention, "source "+source.Name+": "+problem)
		}
	}
	return nil
}

func (of *hubStatus) addClusters(ctx context.Context, s *session.Session) error {
	for c, err := range s.Clusters(ctx) {
		if err != nil {
			return err
		}
		of.Clusters[string(c.Status.Phase)]++
		if c.Status.Phase != client.ClusterPhaseReady {
			of.Attention = append(of.Attention, fmt.Sprintf("cluster %s is %s: %s", c.ClusterID, c.Status.Phase,
				output.OrDash(output.OrEmpty(c.Status.Message))))
		}
		if c.Problems.TotalCount > 0 {
			of.Attention = append(of.Attention, fmt.Sprintf("cluster %s has %s: isthmus describe cluster %s", c.ClusterID,
				output.Counted(c.Problems.TotalCount, "problem"), c.ClusterID))
		}
	}
	return nil
}

func (of *hubStatus) addNetworks(ctx context.Context, s *session.Session) error {
	for n, err := range s.Networks(ctx) {
		if err != nil {
			return err
		}
		of.Networks = append(of.Networks, n.NetworkID)
		if n.Gated && len(n.Gateways) == 0 {
			of.Attention = append(of.Attention, fmt.Sprintf("network %s has no gateway that is used: isthmus get networks -o wide", n.NetworkID))
		}
	}
	return nil
}

// addProxies has the hub count, and lists only the proxies that need attention.
func (of *hubStatus) addProxies(ctx context.Context, s *session.Session) error {
	answer, err := client.ProxyStates(ctx, s)
	if err != nil || answer.Overview == nil {
		return err
	}
	for _, n := range answer.Overview.Proxies.ByState {
		state := n.State
		if state == client.SyncStateNotRequested {
			state = client.SyncStateSynced // it has all that it asked for
		}
		of.Proxies[string(state)] += n.Count
	}
	for _, n := range answer.Overview.Proxies.ByCluster {
		if n.ClusterID != nil && n.Cluster == nil {
			of.Attention = append(of.Attention, fmt.Sprintf("cluster %s of %s %s", *n.ClusterID,
				output.Counted(n.Count, "proxy stream"), notAttached))
		}
	}
	refuses := client.SyncStateNacked
	if of.Proxies[string(refuses)] == 0 {
		return nil
	}
	for p, err := range s.Proxies(ctx, &client.ProxyFilter{SyncState: &refuses}) {
		if err != nil {
			return err
		}
		of.Attention = append(of.Attention, fmt.Sprintf("proxy %s refuses what it was sent: isthmus proxy status %s", p.NodeID, p.NodeID))
	}
	return nil
}

// addFindings has the hub count.
func (of *hubStatus) addFindings(ctx context.Context, s *session.Session) error {
	answer, err := client.FindingNumbers(ctx, s)
	if err != nil || answer.Overview == nil {
		return err
	}
	of.Findings = append(of.Findings, answer.Overview.ConfigObjects.ByFindingCode...)
	if n := answer.Overview.ConfigObjects.WithFindings; n > 0 {
		of.Attention = append(of.Attention, output.Counted(n, "object")+" with findings: isthmus status --findings")
	}
	return nil
}

func (of *hubStatus) listFindings(ctx context.Context, s *session.Session) error {
	for f, err := range s.Findings(ctx) {
		if err != nil {
			return err
		}
		of.Listed = append(of.Listed, output.FindingText(f))
	}
	return nil
}

// findingsText is how many objects have the findings of each code, as "2 IST0101 (warning), 1 NO_EFFECT (warning)". The codes
// that most objects have come first.
func (of hubStatus) findingsText() string {
	const most = 10
	all := slices.SortedStableFunc(slices.Values(of.Findings), func(a, b client.FindingNumber) int { return b.Count - a.Count })
	var parts []string
	for _, n := range all[:min(len(all), most)] {
		parts = append(parts, fmt.Sprintf("%d %s (%s)", n.Count, n.Code, strings.ToLower(string(n.Severity))))
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, "and "+output.Counted(more, "more code"))
	}
	return strings.Join(parts, ", ")
}

func (of hubStatus) print(io cmdutil.Streams) error {
	err := output.PrintLines(io.Out,
		output.Line{"Hub", of.ClusterID + ", version " + of.Version}, output.Line{"Sources", strings.Join(of.Sources, ", ")},
		output.Line{"Clusters", countsText(of.Clusters)}, output.Line{"Networks", strings.Join(of.Networks, ", ")},
		output.Line{"Proxies", countsText(of.Proxies)}, output.Line{"Findings", of.findingsText()},
	)
	if err != nil {
		return err
	}
	return output.PrintParts(io.Out, []output.Part{
		{Head: "Needs attention", Lines: of.Attention},
		{Head: "Findings of objects", Lines: of.Listed},
	})
}

// countsText is how many there are of each, as "3 READY, 1 STALE".
func countsText(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
