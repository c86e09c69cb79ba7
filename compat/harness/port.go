package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddr returns a host:port on 127.0.0.1 that nobody listens on. The port lies below the ephemeral range, so that no
// client socket can take it while the broker is down between a kill and a restart.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return freeAddr(tb)
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	for range 200 {
		addr := fmt.Sprintf("127.0.0.1:%d", 23000+rand.IntN(9000))
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
