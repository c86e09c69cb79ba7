package broker_test

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/broker"
)

// A program or a test has a broker of its own, on a free port and a temporary directory.
func Example() {
	dir, err := os.MkdirTemp("", "gregor")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	b, err := broker.New(broker.Config{Settings: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0",
		"log.dirs":  dir,
	}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := b.Start(ctx); err != nil {
		panic(err)
	}
	defer b.Shutdown(ctx)

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("greetings"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	sent, err := client.ProduceSync(ctx, &kgo.Record{Topic: "greetings", Value: []byte("hello")}).First()
	if err != nil {
		panic(err)
	}
	got := client.PollFetches(ctx).Records()[0]
	fmt.Printf("sent at offset %d, read %q\n", sent.Offset, got.Value)
	// Output: sent at offset 0, read "hello"
}
