package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// clientCommands are those that speak with a hub, or help to. To complete a
// command line (args), cobra reads its flags twice.
func clientCommands(io streams, args []string) []*cobra.Command {
	all := []*cobra.Command{
		applyCommand(io), diffCommand(io), validateCommand(io), getCommand(io), describeCommand(io), deleteCommand(io),
		historyCommand(io), rollbackCommand(io), waitCommand(io), apiResourcesCommand(io), queryCommand(io),
		clusterCommand(io), caCommand(io), contextCommand(io), completionCommand(io), proxyCommand(io), explainCommand(io), statusCommand(io),
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return all
	}
	for _, cmd := range all {
		singly(cmd)
	}
	return all
}
