//go:build unix

package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// fewFiles is a number of open files that a broker with some hundred partitions and connections gets short of.
const fewFiles = 4096

// raiseFileLimit lifts the limit of open files to what the system allows, and says so when that is little.
func raiseFileLimit(logger *slog.Logger) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		logger.Warn("the limit of open files cannot be read", "error", err)
		return
	}
	if l.Cur < l.Max {
		raised := l
		raised.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
			l = raised
		}
	}
	if l.Cur < fewFiles {
		logger.Warn("few files may be open at a time; raise the hard limit (ulimit -Hn, LimitNOFILE=)", "limit", l.Cur, "wanted", fewFiles)
	}
}

// notify delivers the signals that serve acts on.
func notify() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// hangUp sends SIGHUP.
func hangUp(pid int) error { return syscall.Kill(pid, syscall.SIGHUP) }
