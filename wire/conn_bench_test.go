package wire

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkProduce sends pipelined Produce requests over one connection to a handler that does nothing. The client writes prebuilt
// bytes and only counts what comes back.
func BenchmarkProduce(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "64KiB": 64 << 10, "512KiB": 512 << 10, "4MiB": 4 << 20} {
		b.Run(name, func(b *testing.B) {
			resp := kmsg.NewPtrProduceResponse()
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic = "some-topic"
			rt.Partitions = append(rt.Partitions, kmsg.NewProduceResponseTopicPartition())
			resp.Topics = append(resp.Topics, rt)
			reply := Reply{Body: Message(resp)}
			_, addr := running(b, Config{Handler: handlerFunc(func(context.Context, *Request) Reply { return reply })})
			c := dial(b, addr)
			f := frame(produceRequest(9, -1, size), 1)
			resp.Version = 9
			answer := int64(4 + 4 + 1 + len(resp.AppendTo(nil)))
			const perWrite = 32
			many := bytes.Repeat(f, max(1, min(perWrite, 1<<20/len(f))))
			per := len(many) / len(f)
			rounds := (b.N + per - 1) / per
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for range rounds {
					if _, err := c.Write(many); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, c, answer*int64(rounds*per)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(rounds*per)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

// BenchmarkRoundTrip is one small request at a time.
func BenchmarkRoundTrip(b *testing.B) {
	_, addr := running(b, Config{Handler: handlerFunc(echo)})
	c := dial(b, addr)
	f := frame(produceRequest(9, -1, 100), 1)
	buf := make([]byte, 1024)
	c.Write(f)
	n, err := c.Read(buf)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Write(f)
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPending is one small request at a time whose answer another goroutine completes.
func BenchmarkPending(b *testing.B) {
	work := make(chan *promise, 16)
	done := make(chan struct{})
	defer func() { <-done }()
	defer close(work)
	go func() {
		defer close(done)
		for p := range work {
			p.complete(produceAnswer())
		}
	}()
	_, addr := running(b, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		p := newPromise(ctx, req)
		work <- p
		return Reply{Pending: p, Pipeline: true}
	})})
	c := dial(b, addr)
	f := frame(produceRequest(9, -1, 100), 1)
	buf := make([]byte, 1024)
	c.Write(f)
	n, err := c.Read(buf)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Write(f)
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFetch sends answers of one section of 1 MiB to a client that has eight requests outstanding. BenchmarkBareSendfile is the bound.
func BenchmarkFetch(b *testing.B) {
	file, _ := filled(b, benchFile)
	off := 0
	_, addr := running(b, Config{Handler: handlerFunc(func(context.Context, *Request) Reply {
		off = (off + 1<<20) % (benchFile - 1<<20)
		return Reply{Body: fetched{file, off}}
	})})
	c := dial(b, addr)
	f := frame(fetchRequest(), 1)
	const answer = 4 + 4 + 1 + 60 + 1<<20 + 4
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	outstanding := make(chan struct{}, 8)
	go func() {
		for range b.N {
			outstanding <- struct{}{}
			if _, err := c.Write(f); err != nil {
				return
			}
		}
	}()
	b.ResetTimer()
	buf := make([]byte, 1<<20)
	for got, done := 0, 0; done < b.N; {
		n, err := c.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		for got += n; got >= answer; got -= answer {
			<-outstanding
			done++
		}
	}
}

// fetched is an answer with one section of 1 MiB.
type fetched struct {
	file Source
	off  int
}

func (fetched) Key() int16 { return 1 }

func (f fetched) Encode(p *Payload, _ int16) {
	p.Buf = append(p.Buf, make([]byte, 60)...)
	p.Add(Section{Source: f.file, Off: int64(f.off), Len: 1 << 20})
	p.Buf = append(p.Buf, 0, 0, 0, 0)
}
