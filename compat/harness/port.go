package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// FreeAddr returns a host:port on 127.0.0.1 that nobody listens on, and that no other test gets as long as this process lives. The port lies
// below the ephemeral range, so that no client socket can take it while the broker is down between a kill and a restart.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return freeAddr(tb)
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	for range 200 {
		port := 23000 + rand.IntN(9000)
		if !reserve(tb, port) {
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		return addr
	}
	tb.Fatal("no free port between 23000 and 32000 on 127.0.0.1")
	return ""
}

// reserve takes a port for this process, by a lock that ends with it. The descriptor is never closed: the tests of several packages run at the same
// time, and each kills brokers and starts them again on their port.
func reserve(tb testing.TB, port int) bool {
	tb.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gregor-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	fd, err := syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil { // of an earlier broker of this process, too
		_ = syscall.Close(fd)
		return false
	}
	return true
}
