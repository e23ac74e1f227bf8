// Package cluster has the commands that attach clusters and detach them.
package cluster

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/cli/session"
)

// Command attaches, shows and detaches clusters.
func Command(io cmdutil.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster", Short: "Attach and detach clusters", Args: cmdutil.NoArguments,
		Long: `Attach and detach clusters while the hub runs. "isthmus get clusters" lists them.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(attachCommand(io), rotateCommand(io), confirmCommand(io), detachCommand(io))
	return cmdutil.Finish(cmd)
}

// clusterFlags are those of attach and rotate.
type clusterFlags struct {
	access
	network    string
	precedence int
	aliases    []string
	dry        bool
}

func (c *clusterFlags) bind(cmd *cobra.Command, r *session.Flags) {
	f := cmd.Flags()
	r.BindAs(f, "hub-context")
	c.access.bind(f)
	f.BoolVar(&c.dry, "dry-run", false, "only check the cluster and print the results")
}

func attachCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var c clusterFlags
	cmd := &cobra.Command{
		Use: "attach ID --kubeconfig FILE", Short: "Attach a cluster", Args: cmdutil.Exactly(1, "the ID of one cluster"),
		Long: `Attach a cluster: the hub checks it, stores its credentials encrypted, and reads
it. A kubeconfig must have its certificates and tokens inline; "kubectl config view
--raw --minify --flatten" writes such a file.`,
		Example: `  isthmus cluster attach c1 --kubeconfig c1.kubeconfig --network n1
  isthmus cluster attach c1 --kubeconfig c1.kubeconfig --dry-run
  isthmus cluster attach dc1 --consul-address https://consul.example:8501 --token-file token`,
	}
	c.bind(cmd, &r)
	cmd.Flags().StringVar(&c.network, "network", "",
		"`NETWORK` of its endpoints (default: the label of the cluster's kube-system namespace, else default)")
	cmd.Flags().IntVar(&c.precedence, "precedence", 0, "precedence where clusters disagree: the lower `NUMBER` wins (default 100)")
	cmd.Flags().StringSliceVar(&c.aliases, "alias", nil,
		"additional `NAME` of the cluster in proxies and tokens, such as Kubernetes; may be repeated")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		kubernetes, consul, err := c.read(io.In)
		if err != nil {
			return err
		}
		input := client.AttachClusterInput{
			ClusterID: args[0], NetworkID: output.OrNil(c.network), Kubernetes: kubernetes,
			Consul: consul, DryRun: &c.dry,
		}
		if len(c.aliases) > 0 {
			input.Aliases = c.aliases
		}
		if c.precedence != 0 {
			input.Precedence = &c.precedence
		}
		outcome, err := s.AttachCluster(ctx, input)
		if err != nil {
			return err
		}
		return printOutcome(io, outcome, changeReport{id: args[0], did: "attached", dry: c.dry})
	})
	return cmdutil.Finish(cmd)
}

func rotateCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var c clusterFlags
	cmd := &cobra.Command{
		Use: "rotate ID --kubeconfig FILE", Short: "Replace the credentials of an attached cluster",
		Args: cmdutil.Exactly(1, "the ID of one cluster"),
		Long: `Replace the credentials of an attached cluster. The old ones stay in use until the
cluster was read with the new ones.`,
		Example: "  isthmus cluster rotate c1 --kubeconfig new.kubeconfig\n  isthmus cluster rotate c1 --kubeconfig new.kubeconfig --dry-run",
	}
	c.bind(cmd, &r)
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		kubernetes, consul, err := c.read(io.In)
		if err != nil {
			return err
		}
		outcome, err := s.RotateCluster(ctx, client.RotateClusterInput{
			ClusterID: args[0], Kubernetes: kubernetes,
			Consul: consul, DryRun: &c.dry,
		})
		if err != nil {
			return err
		}
		return printOutcome(io, outcome, changeReport{id: args[0], did: "rotated", dry: c.dry})
	})
	return cmdutil.Finish(cmd)
}

func confirmCommand(io cmdutil.Streams) *cobra.Command {
	return plainClusterCommand(io, &cobra.Command{
		Use: "confirm ID", Short: "Accept the change that a cluster is held for",
		Long: `Accept the change that a cluster is held for: a list that lacks much of what was
there before, or another cluster at the same address.`,
		Example: "  isthmus cluster confirm c1",
	}, "confirmed", (*client.Client).ConfirmCluster)
}

func detachCommand(io cmdutil.Streams) *cobra.Command {
	return plainClusterCommand(io, &cobra.Command{
		Use: "detach ID", Short: "Detach a cluster",
		Long:    "Detach a cluster: delete its credentials and everything that it contributes.",
		Example: "  isthmus cluster detach c1",
	}, "detached", (*client.Client).DetachCluster)
}

func plainClusterCommand(
	io cmdutil.Streams, cmd *cobra.Command, did string, do func(*client.Client, context.Context, string) (client.ClusterOutcome, error),
) *cobra.Command {
	var r session.Flags
	r.Bind(cmd.Flags())
	cmd.Args = cmdutil.Exactly(1, "the ID of one cluster")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		outcome, err := do(s.Client, ctx, args[0])
		if err != nil {
			return err
		}
		return printOutcome(io, outcome, changeReport{id: args[0], did: did})
	})
	return cmdutil.Finish(cmd)
}

// changeReport is how a change of a cluster is reported.
type changeReport struct {
	id, did string
	dry     bool
}

// printOutcome prints the result of a request: findings of a dry run are its data,
// else they are warnings.
func printOutcome(io cmdutil.Streams, o client.ClusterOutcome, t changeReport) error {
	if t.dry {
		if err := printFindings(io, o.Findings); err != nil {
			return err
		}
	} else {
		for _, f := range o.Findings {
			if f.Severity == client.SeverityWarning {
				if _, err := fmt.Fprintf(io.Err, "warning: %s [%s]\n", f.Message, f.Code); err != nil {
					return err
				}
			}
		}
	}
	for _, e := range o.UserErrors {
		field := ""
		if e.Field != nil {
			field = *e.Field + ": "
		}
		if _, err := fmt.Fprintf(io.Err, "%s%s [%s]\n", field, e.Message, e.Code); err != nil {
			return err
		}
	}
	was := map[bool]string{false: "was not", true: "would not be"}[t.dry]
	if len(o.UserErrors) > 0 {
		return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: fmt.Sprintf("cluster %s %s %s; correct this and repeat", t.id, was, t.did)}
	}
	if t.dry {
		_, err := fmt.Fprintf(io.Out, "cluster %s would be %s\n", t.id, t.did)
		return err
	}
	_, err := fmt.Fprintf(io.Out, "cluster %s %s\n", t.id, t.did)
	return err
}

func printFindings(io cmdutil.Streams, findings []client.Finding) error {
	table := tabwriter.NewWriter(io.Out, 0, 0, 3, ' ', 0)
	if _, err := fmt.Fprintln(table, "CHECK\tRESULT\tMESSAGE"); err != nil {
		return err
	}
	for _, f := range findings {
		result := map[client.Severity]string{
			client.SeverityError: "refused", client.SeverityWarning: "warning",
			client.SeverityInfo: "ok",
		}[f.Severity]
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.Code, result, f.Message); err != nil {
			return err
		}
	}
	return table.Flush()
}
