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
		Use: "status [NODE…]", Short: "Show which proxies have what the hub sent them",
		Long: `Show which proxies have what the hub sent them, type by type. Of a proxy that is
named, by its node ID, versions and errors are shown, too.`,
		Example: "  isthmus proxy status\n  isthmus proxy status -w",
	}
	r.bind(cmd.Flags())
	cmd.Flags().StringVarP(&given.output, "output", "o", "wide", "`FORMAT` of the list: table, wide, yaml, json, name or jsonpath=TEMPLATE")
	cmd.Flags().BoolVarP(&given.watch, "watch", "w", false, "go on showing what changes")
	cmd.RunE = withStream(&r, io, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 || given.watch || cmd.Flags().Changed("output") {
			return s.get(ctx, given, append([]string{hubProxies}, args...))
		}
		ctx, cancel := s.within(ctx)
		defer cancel()
		t := target{sort: sort{hub: hubProxies}, word: hubProxies}
		for i, id := range args {
			if i > 0 {
				_, _ = fmt.Fprintln(s.io.out) // the next line's error tells
			}
			if err := s.describeProxy(ctx, t, named{name: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return finish(cmd)
}
