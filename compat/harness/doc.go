// Package harness runs the broker's real binary for tests: it builds it once, starts it, waits for the line that says
// where it listens, stops it by SIGTERM, kills it by SIGKILL and starts it again on the same directory and port.
//
// Four environment variables steer it:
//
//   - GREGOR_COMPAT_BOOTSTRAP=host:port aims every test that needs only a socket at a broker that runs already.
//     Tests that need the process or the files print that as their reason and do not run.
//   - GREGOR_COMPAT_BINARY=path runs that program in place of a fresh build. It must take gregor's command line.
//   - GREGOR_COMPAT_FOREIGN=1 says that the broker so given is not gregor but, say, Apache Kafka, on which the tests
//     are checked: what only gregor promises (memory, messages) is left out, and the test prints that.
//   - GREGOR_RACE=1 builds with the race detector; a report of it fails the test.
//
// A Broker belongs to the test that started it and ends with it. Its methods that take a testing.TB may be called from
// the test's own goroutine only; Addr, PID and RSS from any. One goroutine per running process waits for its end; no
// lock is held while anything waits.
package harness
