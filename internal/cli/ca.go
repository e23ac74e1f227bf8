package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/session"
)

func caCommand(io cmdutil.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ca", Short: "Show and rotate the certificate authority", Args: cmdutil.NoArguments,
		Long: "Show who signs workload certificates and which roots are trusted, and create a new root.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(caShowCommand(io), caRotateCommand(io))
	return cmdutil.Finish(cmd)
}

func caShowCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	cmd := &cobra.Command{
		Use: "show", Short: "Show signers and trusted roots", Args: cmdutil.Exactly(0, "nothing"),
		Long:    "Show the signers in the order in which they sign, and the trusted roots of each trust domain.",
		Example: "  isthmus ca show",
	}
	r.Bind(cmd.Flags())
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, _ []string) error {
		a, err := s.CertificateAuthority(ctx)
		if err != nil {
			return err
		}
		return showAuthority(io, a)
	})
	return cmdutil.Finish(cmd)
}

func caRotateCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var force bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Create a new root", Args: cmdutil.Exactly(0, "nothing"),
		Long: `Create a new root. It is trusted at once and signs after the overlap
(identity.overlap in the hub's config file). The old root is trusted until the last
certificate that it signed has expired. To rotate signers from files or a Secret,
change the files or the Secret.`,
		Example: "  isthmus ca rotate",
	}
	r.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false,
		"rotate even if the key of a signer cannot be opened; that key is abandoned, and the new root signs at once")
	cmd.RunE = session.WithHub(&r, io, func(ctx context.Context, s *session.Session, _ []string) error {
		outcome, err := s.RotateCertificateAuthority(ctx, force)
		if err != nil {
			return err
		}
		for _, e := range outcome.UserErrors {
			if _, err := fmt.Fprintf(io.Err, "%s [%s]\n", e.Message, e.Code); err != nil {
				return err
			}
		}
		if len(outcome.UserErrors) > 0 || outcome.Authority == nil {
			return cmdutil.Failed{Code: cmdutil.ExitFailed, Text: "the certificate authority was not rotated; \"isthmus ca show\" lists its signers"}
		}
		return printRotation(io, *outcome.Authority)
	})
	return cmdutil.Finish(cmd)
}

// printRotation prints from when on the newest signer signs.
func printRotation(io cmdutil.Streams, a client.AuthoritySummary) error {
	last := a.Signers[len(a.Signers)-1]
	when := "signs now"
	if last.State == client.SignerStateWaiting {
		when = "signs from " + last.SigningStartsAt.UTC().Format(time.RFC3339) + " on"
	}
	_, err := fmt.Fprintf(io.Out, "new root %s is trusted and %s\n", short(last.Fingerprint), when)
	return err
}

func showAuthority(io cmdutil.Streams, a client.AuthoritySummary) error {
	signs := "no"
	if a.Signs {
		signs = "yes"
	}
	if _, err := fmt.Fprintf(io.Out, "trust domain: %s\nsource:       %s\nsigns:        %s\n", a.TrustDomain,
		strings.ToLower(string(a.Source)), signs); err != nil {
		return err
	}
	if a.Message != nil {
		if _, err := fmt.Fprintf(io.Out, "message:      %s\n", *a.Message); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(io.Out, 0, 0, 3, ' ', 0)
	if len(a.Signers) > 0 {
		if _, err := fmt.Fprintln(table, "\nSIGNER\tSTATE\tTRUSTED SINCE\tSIGNS FROM\tENDS"); err != nil {
			return err
		}
	}
	for _, s := range a.Signers {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", short(s.Fingerprint), s.State, onDay(s.TrustedAt), onDay(s.SigningStartsAt),
			onDay(s.ExpiresAt)); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(table, "\nTRUST DOMAIN\tROOT\tENDS\tCLUSTERS"); err != nil {
		return err
	}
	for _, b := range a.Bundles {
		for _, root := range b.Roots {
			if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.TrustDomain, short(root.Fingerprint), onDay(root.ExpiresAt),
				strings.Join(root.ClusterIDs, ",")); err != nil {
				return err
			}
		}
	}
	return table.Flush()
}

// short is enough of a fingerprint for people.
func short(fingerprint string) string { return fingerprint[:min(16, len(fingerprint))] }

func onDay(t time.Time) string { return t.UTC().Format(time.RFC3339) }
