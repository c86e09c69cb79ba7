package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeNode starts and stops when the test lets it.
type fakeNode struct {
	started, stopped chan error
	stopping         chan struct{} // closed when Shutdown is called
	done             chan struct{}
}

func newFake() *fakeNode {
	return &fakeNode{started: make(chan error, 1), stopped: make(chan error, 1), stopping: make(chan struct{}), done: make(chan struct{})}
}

func (f *fakeNode) Start(ctx context.Context) error {
	select {
	case err := <-f.started:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeNode) Shutdown(context.Context) error {
	close(f.stopping)
	return <-f.stopped
}

func (f *fakeNode) Done() <-chan struct{} { return f.done }

func TestSignalDuringStart(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGHUP
	signals <- syscall.SIGTERM
	if stopped, err := start(newFake(), signals); !stopped || err != nil {
		t.Errorf("got %v, %v, want a clean stop", stopped, err)
	}
	f, wrong := newFake(), errors.New("wrong")
	f.started <- wrong
	if stopped, err := start(f, signals); stopped || !errors.Is(err, wrong) {
		t.Errorf("got %v, %v, want the error of the start", stopped, err)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal) // unbuffered: the first is taken before the second is sent
		f, result := newFake(), make(chan error)
		go func() { result <- untilStopped(f, signals, slog.New(slog.DiscardHandler), func() {}) }()
		signals <- syscall.SIGINT
		<-f.stopping
		signals <- syscall.SIGINT // the same one, delivered twice
		<-time.After(sameSignal)
		signals <- syscall.SIGHUP // does not count
		signals <- syscall.SIGINT
		if err := <-result; !errors.Is(err, errSecondSignal) {
			t.Errorf("got %v", err)
		}
		f.stopped <- nil // lets Shutdown end
	})
}

func TestErrorOfTheStop(t *testing.T) {
	signals, f, wrong := make(chan os.Signal, 1), newFake(), errors.New("wrong")
	signals <- syscall.SIGTERM
	f.stopped <- wrong
	if err := untilStopped(f, signals, slog.New(slog.DiscardHandler), func() {}); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}

func TestBrokerThatStopsByItself(t *testing.T) {
	f := newFake()
	close(f.done)
	if err := untilStopped(f, make(chan os.Signal), slog.New(slog.DiscardHandler), func() {}); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}
