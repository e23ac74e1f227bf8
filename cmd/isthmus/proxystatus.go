package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func proxyStatusCommand(io streams) *cobra.Command {
	var r remote
	var given getFlags
	cmd := &cobra.Command{
		Use: "status [PROXY…]", Short: "Show whether proxies have the current resources",
		Long: `Show whether proxies have the current resources, for each resource type. For a
proxy that you name by its node ID, or by the third part of it, also shows versions
and errors. If proxies in several clusters have that name, write CLUSTER/PROXY.`,
		Example: "  isthmus proxy status\n  isthmus proxy status -w\n  isthmus proxy status web-1.shop",
	}
	r.bind(cmd.Flags())
	cmd.Flags().StringVarP(&given.output, "output", "o", "wide", "`FORMAT` of the list: table, wide, yaml, json, name or jsonpath=TEMPLATE")
	cmd.Flags().BoolVarP(&given.watch, "watch", "w", false, "show changes until interrupted")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 || given.watch || cmd.Flags().Changed("output") {
			return getItems(ctx, s, given, append([]string{hubProxies}, args...))
		}
		ctx, cancel := s.within(ctx)
		defer cancel()
		t := target{sort: sort{hub: hubProxies}, word: hubProxies}
		for i, id := range args {
			if i > 0 {
				_, _ = fmt.Fprintln(s.io.out) // the next line's error tells
			}
			if err := describeProxy(ctx, s, t, named{name: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return finish(cmd)
}
