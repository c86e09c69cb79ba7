//go:build !unix

package main

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
)

// raiseFileLimit does nothing where there is no such limit.
func raiseFileLimit(*slog.Logger) {}

// notify delivers the signals that serve acts on.
func notify() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt)
	return signals, func() { signal.Stop(signals) }
}

// hangUp cannot be done where there is no such signal.
func hangUp(int) error { return errors.ErrUnsupported }
