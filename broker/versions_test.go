package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestEveryAdvertisedVersion sends each key at each version that ApiVersions lists, with a body of defaults: there is an answer, and it parses
// to the last byte.
func TestEveryAdvertisedVersion(t *testing.T) {
	b := startBroker(t, t.TempDir())
	listed := ask[*kmsg.ApiVersionsResponse](b.dial(), 0, kmsg.NewPtrApiVersionsRequest())
	if len(listed.ApiKeys) != len(b.apis) {
		t.Fatalf("%d keys are listed, %d are served", len(listed.ApiKeys), len(b.apis))
	}
	for _, key := range listed.ApiKeys {
		c := b.dial()
		for version := key.MinVersion; version <= key.MaxVersion; version++ {
			r := kmsg.RequestForKey(key.ApiKey)
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
