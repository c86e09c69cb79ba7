package zk

import (
	"net"
	"strings"
	"testing"
	"time"
)

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes them
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestSilentServer: the wait for a server that says nothing ends when it should, with nothing left behind.
func TestSilentServer(t *testing.T) {
	done := make(chan error, 1)
	go func() {
		_, err := Open(t.Context(), Options{Connect: silent(t), SessionTimeout: time.Hour, ConnectTimeout: 100 * time.Millisecond})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Open does not return")
	}
}

// TestGreetingIsBounded: the library asks for ten times too long, and for no limit between the length and the rest of the first answer.
func TestGreetingIsBounded(t *testing.T) {
	d := newDialer(3*time.Second, 3, nil)
	c, err := d.dial("tcp", silent(t), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.SetReadDeadline(time.Now().Add(time.Hour)))
	must(c.SetReadDeadline(time.Time{}))
	if _, err := c.Read(make([]byte, 1)); err == nil || !err.(net.Error).Timeout() {
		t.Errorf("read of a silent server: %v", err)
	}
	must(c.SetReadDeadline(time.Now().Add(time.Hour)))
	d.close()
	if _, err := c.Read(make([]byte, 1)); err == nil || err.(net.Error).Timeout() {
		t.Errorf("read after close: %v", err)
	}
	if _, err := d.dial("tcp", silent(t), time.Second); err == nil {
		t.Error("a closed dialer dials")
	}
}
