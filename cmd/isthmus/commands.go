package main

import "github.com/spf13/cobra"

// clientCommands are those that speak with a hub, or help to.
func clientCommands(io streams) []*cobra.Command {
	return []*cobra.Command{
		applyCommand(io), diffCommand(io), validateCommand(io), getCommand(io), describeCommand(io), deleteCommand(io),
		historyCommand(io), rollbackCommand(io), waitCommand(io), apiResourcesCommand(io), queryCommand(io),
		contextCommand(io), completionCommand(io),
	}
}
