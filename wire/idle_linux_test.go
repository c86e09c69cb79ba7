package wire

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

// residentBytes is the process's RSS.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// rawDial connects without the Go runtime, so that the client's side costs this process nothing but a descriptor.
func rawDial(t *testing.T, addr string) int {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// exchange sends a frame and reads its whole answer.
func exchange(t *testing.T, fd int, f, buf []byte) {
	t.Helper()
	for len(f) > 0 {
		n, err := unix.Write(fd, f)
		if err != nil {
			t.Fatal(err)
		}
		f = f[n:]
	}
	if n, err := unix.Read(fd, buf); err != nil || n == 0 {
		t.Fatalf("read: %d, %v", n, err)
	}
}

// TestIdleConnectionsAreSmall opens connections, uses each for a handshake and a larger request, and weighs them when idle.
// Measured with 2,000: 7.6 kB each; the race detector makes it 48 kB.
func TestIdleConnectionsAreSmall(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	count := min(2000, int(limit.Cur/2)-100)
	if count < 100 {
		t.Skipf("only %d open files are allowed", limit.Cur)
	}
	s, addr := running(t, Config{Handler: handlerFunc(echo)})
	hello, produce := frame(versioned(kmsg.NewPtrApiVersionsRequest(), 3), 1), frame(produceRequest(9, -1, 60<<10), 2)
	buf := make([]byte, 4096)
	exchange(t, rawDial(t, addr), produce, buf)
	debug.FreeOSMemory()
	before := residentBytes(t)
	for range count {
		fd := rawDial(t, addr)
		exchange(t, fd, hello, buf)
		exchange(t, fd, produce, buf)
	}
	for range 3 { // each collection halves stacks that are little used
		runtime.GC()
	}
	debug.FreeOSMemory()
	each := (residentBytes(t) - before) / int64(count)
	t.Logf("%d idle connections, %d bytes of RSS each", s.Stats().Connections, each)
	if each > 20_000 && !raceEnabled {
		t.Errorf("an idle connection takes %d bytes, want less than 20 kB", each)
	}
}
