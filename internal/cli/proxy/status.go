package proxy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/describe"
	"isthmus.dev/isthmus/internal/cli/get"
	"isthmus.dev/isthmus/internal/cli/resource"
	"isthmus.dev/isthmus/internal/cli/session"
)

func proxyStatusCommand(io cmdutil.Streams) *cobra.Command {
	var r session.Flags
	var given get.Flags
	cmd := &cobra.Command{
		Use: "status [PROXY…]", Short: "Show whether proxies have the current resources",
		Long: `Show whether proxies have the current resources, for each resource type. For a
proxy that you name by its node ID, or by the third part of it, also shows versions
and errors. If proxies in several clusters have that name, write CLUSTER/PROXY.`,
		Example: "  isthmus proxy status\n  isthmus proxy status -w\n  isthmus proxy status web-1.shop",
	}
	r.Bind(cmd.Flags())
	cmd.Flags().StringVarP(&given.Output, "output", "o", "wide", "`FORMAT` of the list: table, wide, yaml, json, name or jsonpath=TEMPLATE")
	cmd.Flags().BoolVarP(&given.Watch, "watch", "w", false, "show changes until interrupted")
	cmd.RunE = session.WithStream(&r, io, func(ctx context.Context, s *session.Session, args []string) error {
		if len(args) == 0 || given.Watch || cmd.Flags().Changed("output") {
			return get.Run(ctx, s, given, append([]string{resource.Proxies}, args...))
		}
		ctx, cancel := s.Within(ctx)
		defer cancel()
		t := resource.Hub(resource.Proxies)
		for i, id := range args {
			if i > 0 {
				_, _ = fmt.Fprintln(s.IO.Out) // the next line's error tells
			}
			if err := describe.Proxy(ctx, s, t, resource.Name{Name: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return cmdutil.Finish(cmd)
}
