// Command demo shows the hub bridging three networks, and leaves them running:
//
//	demo up PROGRAM FOLDER    builds the networks, tells the story and returns
//	demo lab FOLDER           makes two networks for a reader to bridge, and returns
//	demo down FOLDER          ends what up or lab left running
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
		return up(folder(args[2]), []string{"stay", args[1]}, os.Stdout)
	case len(args) == 3 && args[0] == "stay":
		return stay(os.Stdout, func(s *stage) { teller{stage: s, out: os.Stdout}.tell(args[1]) })
	case len(args) == 2 && args[0] == "lab":
		return up(folder(args[1]), []string{"stay-lab"}, os.Stdout)
	case len(args) == 2 && args[0] == "stay-lab":
		return stay(os.Stdout, func(s *stage) { lab(s, folder(args[1])) })
	case len(args) == 2 && args[0] == "down":
		return folder(args[1]).down(os.Stdout)
	}
	return errors.New("use demo up PROGRAM FOLDER, demo lab FOLDER, or demo down FOLDER")
}
