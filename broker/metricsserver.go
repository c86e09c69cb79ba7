package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// scrapeLimit bounds how long a scraper may take to send its request and to read the answer.
const scrapeLimit = 30 * time.Second

// metricsServer answers GET /metrics on an address of its own (gregor.metrics.listener). Its goroutine ends with close.
type metricsServer struct {
	http *http.Server
	addr string
	done chan struct{}
}

// serveMetrics listens on addr.
func (b *Broker) serveMetrics(addr string) (*metricsServer, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("gregor.metrics.listener %s cannot be used; is another process there? %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		out := bufio.NewWriter(w)
		b.writeMetrics(out)
		_ = out.Flush() // a scraper that is gone needs none
	})
	s := &metricsServer{
		http: &http.Server{Handler: mux, ReadTimeout: scrapeLimit, WriteTimeout: scrapeLimit, IdleTimeout: 2 * time.Minute},
		addr: l.Addr().String(), done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			b.logger.Error("metrics are no longer served", "address", addr, "error", err)
		}
	}()
	return s, nil
}

// close ends the scrapes that are under way, at the latest when the context ends.
func (s *metricsServer) close(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	<-s.done
}

// MetricsAddr is where metrics are served as host:port, once Start returned; empty if nowhere.
func (b *Broker) MetricsAddr() string {
	if b.metrics == nil {
		return ""
	}
	return b.metrics.addr
}
