package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/broker"
)

// TestPartitionsCommand closes, lists and opens on a real broker.
func TestPartitionsCommand(t *testing.T) {
	b, err := broker.New(broker.Config{Settings: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer b.Shutdown(t.Context()) //nolint:errcheck // the test's directory goes with it
	gregor := func(args ...string) (int, string) {
		code, out, errs := call(nil, append([]string{"partitions", "--bootstrap-server", b.Addr()}, args...)...)
		return code, out + errs
	}
	if code, text := gregor("list"); code != 0 || text != "no topics\n" {
		t.Errorf("an empty broker: code %d\n%s", code, text)
	}
	if code, text := gregor("close", "nothing"); code != 1 || !strings.Contains(text, "topic nothing: UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("a topic that is not there: code %d\n%s", code, text)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 8, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"close", "orders", "0-2,5"}, "3-4,6-  all"},
		{[]string{"close", "orders", "4", "--read"}, "3,6-  0-3,5-"},
		{[]string{"open", "orders", "4-5"}, "3-  all"},
		{[]string{"close", "orders", "--read"}, "none  none"},
		{[]string{"open", "orders"}, "all  all"},
	} {
		if code, text := gregor(step.args...); code != 0 {
			t.Fatalf("%v: code %d\n%s", step.args, code, text)
		}
		_, text := gregor("list", "orders")
		_, line, _ := strings.Cut(text, "\n")
		if got := strings.Join(strings.Fields(line), "  "); got != "orders  8  "+step.want {
			t.Errorf("%v: %q, want %q", step.args, got, step.want)
		}
	}
	if code, text := gregor("close", "orders", "some"); code != 1 || !strings.Contains(text, `"some" is not a partition`) {
		t.Errorf("a wrong range: code %d\n%s", code, text)
	}
	if code, text := gregor("close", "orders", "8-9"); code != 1 || !strings.Contains(text, "topic orders has partitions 0 to 7: 8-9 are not there") {
		t.Errorf("partitions that are not there: code %d\n%s", code, text)
	}
	code, _, errs := call(nil, "partitions", "list", "-b", "127.0.0.1:1", "--timeout", "300ms")
	if code != 1 || !strings.Contains(errs, "no broker answers at [127.0.0.1:1]") {
		t.Errorf("no broker: code %d\n%s", code, errs)
	}
}
