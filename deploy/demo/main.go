// Command demo shows the hub bridging three networks, and leaves them running:
//
//	demo up PROGRAM FOLDER    builds the world, tells the story and returns
//	demo down FOLDER          ends what up left running
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "up":
		return up(folder(args[2]), args[1], os.Stdout)
	case len(args) == 3 && args[0] == "stay":
		return stay(args[1], os.Stdout)
	case len(args) == 2 && args[0] == "down":
		return folder(args[1]).down(os.Stdout)
	}
	return errors.New("use demo up PROGRAM FOLDER, or demo down FOLDER")
}
