package apply

import (
	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryNone   dryRun = "none"
	dryServer dryRun = "server"
	dryClient dryRun = "client"
)

// bindDryRun is for commands that cannot be tried without a hub.
func bindDryRun(f *pflag.FlagSet, value *string) {
	f.StringVar(value, "dry-run", string(dryNone), "only report what would happen; `MODE` can be none or server (the default without a value)")
	f.Lookup("dry-run").NoOptDefVal = string(dryServer)
}

func checkDryRun(value string) error {
	if dryRun(value) == dryClient {
		return cmdutil.Usagef("--dry-run: only the hub knows what would happen; write --dry-run=server")
	}
	return cmdutil.OneOf("dry-run", value, string(dryNone), string(dryServer))
}
