package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gregor/broker"
)

// stopLimit bounds the wait for connections at a clean stop.
const stopLimit = 30 * time.Second

// Errors that end serve without a clean stop.
var (
	errSecondSignal = errors.New("second signal: ended without a clean stop; the next start checks the logs")
	errStopped      = errors.New("the broker stopped by itself; its log says why")
)

// node is what serve needs of a broker.
type node interface {
	Start(ctx context.Context) error
	Shutdown(ctx context.Context) error
	Done() <-chan struct{}
}

func serveCommand(s streams) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the broker",
		Long: "Runs the broker until SIGTERM or Ctrl-C. A setting is taken from the first of these that has it: flags, --set, an environment variable\n" +
			"(GREGOR_LOG_RETENTION_MS for log.retention.ms), the file given with --config, the default.",
		Example: "  gregor serve\n  gregor serve --config server.properties --data-dir /var/lib/gregor --listen :9092 --set num.partitions=6",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return serve(&o, s) },
	}
	o.flags(c)
	return c
}

func serve(o *options, s streams) error {
	level, err := o.level()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: level}))
	layers, err := o.layers(s.environ, logger)
	if err != nil {
		return err
	}
	raiseFileLimit(logger)
	b, err := broker.New(broker.Config{Layers: layers, Logger: logger, Version: moduleVersion()})
	if err != nil {
		return err
	}
	if stopped, err := start(b, s.signals); stopped || err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.out, readyLine(b.Addrs(), b.DataDir(), b.Metadata())); err != nil {
		logger.Warn("standard output cannot be written", "error", err)
	}
	reload := func() {
		layers, err := o.layers(s.environ, logger)
		var r broker.Reloaded
		if err == nil {
			r, err = b.Reload(context.Background(), layers...)
		}
		if err != nil {
			logger.Error("SIGHUP: the settings cannot be used, nothing changes", "error", err)
			return
		}
		logger.Info("SIGHUP: settings read again", "in force", strings.Join(r.Applied, " "), "need a restart", strings.Join(r.Restart, " "),
			"without effect", strings.Join(r.Unknown, " "))
	}
	return untilStopped(b, s.signals, logger, reload)
}

// start starts the broker. A signal ends the start, or stops what has just started.
func start(b node, signals <-chan os.Signal) (stopped bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- b.Start(ctx) }()
	for {
		select {
		case err := <-started:
			switch {
			case !stopped:
				return false, err
			case err == nil:
				return true, shutdown(b)
			case errors.Is(err, context.Canceled):
				return true, nil
			}
			return true, err
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
			case stopped:
				return true, errSecondSignal
			default:
				stopped = true
				cancel()
			}
		}
	}
}

func shutdown(b node) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return b.Shutdown(ctx)
}

// untilStopped waits for a signal, then for the clean stop. SIGHUP calls reload.
func untilStopped(b node, signals <-chan os.Signal, logger *slog.Logger, reload func()) error {
	for {
		select {
		case <-b.Done():
			return errStopped
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				reload()
				continue
			}
			logger.Info("stopping", "signal", sig.String())
			return stop(b, signals, logger)
		}
	}
}

// sameSignal is how long after the first signal another one is taken for the same: process groups and supervisors deliver some twice.
const sameSignal = 500 * time.Millisecond

func stop(b node, signals <-chan os.Signal, logger *slog.Logger) error {
	began := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- shutdown(b) }()
	for {
		select {
		case err := <-stopped:
			if err == nil {
				logger.Info("stopped")
			}
			return err
		case sig := <-signals:
			if sig != syscall.SIGHUP && time.Since(began) >= sameSignal {
				return errSecondSignal
			}
		}
	}
}

// readyLine says where the broker is, what it stands on, and how to try it, on its first address.
func readyLine(addrs []string, dir, metadata string) string {
	try := addrs[0]
	if host, port, err := net.SplitHostPort(try); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			try = net.JoinHostPort("localhost", port)
		}
	}
	return fmt.Sprintf("gregor %s listening on %s, data in %s, metadata in %s; try: echo hello | kcat -b %s -t test -P", moduleVersion(), strings.Join(addrs, ", "), dir, metadata, try)
}
