// Command isthmus is the hub and its command line.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"isthmus.dev/isthmus/internal/cli"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/hub/logs"
	"isthmus.dev/isthmus/internal/hub/settings"
)

func main() {
	os.Exit(runProgram(func(s *settings.Settings) { s.AdoptLog = adoptLogs }))
}

// runProgram executes the command line of this process.
func runProgram(with func(*settings.Settings)) int {
	adoptLogs(logs.Open(os.Stderr, logs.Config{}).Logger)
	io := cmdutil.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return cli.Run(untilSignal(), os.Args[1:], io, serveCommand(io, with))
}

// adoptLogs has libraries that log on their own do it by the logger: client-go
// by klog, net/http and others by the log package.
func adoptLogs(to *slog.Logger) {
	slog.SetDefault(to)
	klog.SetSlogLogger(to)
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends; a second
// one ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(cmdutil.ExitFailed)
	}()
	return ctx
}
