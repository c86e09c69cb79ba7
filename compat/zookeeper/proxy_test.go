package zookeeper

import (
	"net"
	"sync"
	"testing"
	"time"

	"gregor/compat/harness"
)

// proxy stands between a broker and ZooKeeper.
type proxy struct {
	addr, target string
	running      sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	delay time.Duration // for each piece of each direction
	open  map[net.Conn]bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{addr: harness.FreeAddr(t), target: target, open: map[net.Conn]bool{}}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.setCut(true)
		p.running.Wait()
	})
	return p
}

// setCut ends all connections, and each new one, until it is called with false.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut = cut; cut {
		for c := range p.open {
			_ = c.Close()
		}
	}
}

func (p *proxy) setDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		p.open[c] = true
	}
	return !p.cut
}

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	if !p.keep(from) {
		return
	}
	to, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	if !p.keep(to) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			p.pump(way[0], way[1])
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, from)
	delete(p.open, to)
}

func (p *proxy) pump(from, to net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay)
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
