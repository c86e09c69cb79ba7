package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestEveryAdvertisedVersion sends each key at each version that ApiVersions lists, with a body of defaults: there is an answer, and it parses
// to the last byte.
func TestEveryAdvertisedVersion(t *testing.T) {
	everyAdvertisedVersion(t, startBroker(t, t.TempDir()))
}

// TestEveryAdvertisedVersionTwoPhase: there is one more with two-phase commit.
func TestEveryAdvertisedVersionTwoPhase(t *testing.T) {
	everyAdvertisedVersion(t, startBroker(t, t.TempDir(), "transaction.two.phase.commit.enable", "true"))
}

// TestEveryAdvertisedVersionShared: there are more in a cluster.
func TestEveryAdvertisedVersionShared(t *testing.T) {
	everyAdvertisedVersion(t, startShared(t, Config{}, t.TempDir()))
}

// bodyFor is an empty request of any key and version that is served.
func bodyFor(key, version int16) kmsg.Request {
	if r := newBody(key, version); r != nil {
		return r
	}
	return kmsg.RequestForKey(key)
}

func everyAdvertisedVersion(t *testing.T, b *testBroker) {
	t.Helper()
	listed := ask[*kmsg.ApiVersionsResponse](b.dial(), 0, kmsg.NewPtrApiVersionsRequest())
	if len(listed.ApiKeys) != len(b.apis) {
		t.Fatalf("%d keys are listed, %d are served", len(listed.ApiKeys), len(b.apis))
	}
	for _, key := range listed.ApiKeys {
		c := b.dial()
		for version := key.MinVersion; version <= key.MaxVersion; version++ {
			r := bodyFor(key.ApiKey, version)
			if r.MaxVersion() < version {
				t.Fatalf("key %d v%d is listed, kmsg has it up to v%d", key.ApiKey, version, r.MaxVersion())
			}
			if d, ok := r.(interface{ Default() }); ok {
				d.Default()
			}
			switch r := r.(type) {
			case *kmsg.ProduceRequest:
				r.Acks = -1 // acks 0 has no answer
			case *kmsg.FetchRequest:
				r.SessionEpoch = -1
			case *kmsg.ApiVersionsRequest:
				r.ClientSoftwareName, r.ClientSoftwareVersion = "test", "1"
			}
			ask[kmsg.Response](c, version, r)
		}
	}
}

// TestFailedStartThenShutdown: whoever shuts down what did not start gets no panic, and the directory is free.
func TestFailedStartThenShutdown(t *testing.T) {
	other := startBroker(t, t.TempDir())
	dir := t.TempDir()
	b := newBroker(t, Config{}, dir, "listeners", "PLAINTEXT://"+other.Addr())
	if err := b.Start(t.Context()); err == nil {
		t.Fatal("a broker started on a port that is taken")
	}
	b.stopClean()
	startBroker(t, dir)
}
