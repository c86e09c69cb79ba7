package broker

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/broker/meta"
	"gregor/wire"
)

// Listeners, advertised addresses and limits of connections change while the broker runs (KIP-226, KIP-402, KIP-612).

// boundListener is a listener of the configuration with what it is bound to.
type boundListener struct {
	config.Listener
	addr net.Addr
}

// listeners are those that are bound, in the order of the configuration.
type listeners struct {
	mu  sync.Mutex // a leaf
	all []boundListener
}

func (l *listeners) get() []boundListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *listeners) set(all []boundListener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = all
}

// openListeners binds the listeners of the configuration, before Serve. Those that were set at run time and cannot be bound any more give way to
// those of the file: nobody could set others otherwise.
func (b *Broker) openListeners(ctx context.Context) error {
	now := b.settings().Listeners
	all, err := b.bind(now)
	if err != nil && !slices.Equal(now, b.conf.Listeners) {
		b.logger.Error("listeners that were set at run time cannot be bound, those of the file are used", "error", err)
		all, err = b.bind(b.conf.Listeners)
	}
	if err != nil {
		return err
	}
	b.listeners.set(all)
	if b.steward != nil {
		return nil // it registers later
	}
	return b.readdress(ctx)
}

// bind binds listeners, all or none.
func (b *Broker) bind(wanted []config.Listener) ([]boundListener, error) {
	var bound []boundListener
	for _, l := range wanted {
		addr, err := b.server.Listen(l.Name, net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))))
		if err != nil {
			b.unbind(bound)
			return nil, err
		}
		bound = append(bound, boundListener{l, addr})
	}
	return bound, nil
}

func (b *Broker) unbind(bound []boundListener) {
	for _, l := range bound {
		b.server.Unlisten(l.addr)
	}
}

// changeListeners binds what next has and is not bound yet. Then keep ends the listeners that next does not have, and drop takes the change back; one
// of them must be called. Broker.admin is held.
func (b *Broker) changeListeners(next *config.Server) (keep, drop func(), err error) {
	old := b.listeners.get()
	is := func(l config.Listener) func(boundListener) bool {
		return func(o boundListener) bool { return o.Listener == l }
	}
	var missing []config.Listener
	for _, l := range next.Listeners {
		if !slices.ContainsFunc(old, is(l)) {
			missing = append(missing, l)
		}
	}
	added, err := b.bind(missing)
	if err != nil {
		return nil, nil, refuse(kerr.InvalidRequest, "%s", err.Error())
	}
	keep = func() {
		var all []boundListener
		both := append(slices.Clone(old), added...)
		for _, l := range next.Listeners {
			all = append(all, both[slices.IndexFunc(both, is(l))])
		}
		b.listeners.set(all)
		b.unbind(slices.DeleteFunc(old, func(o boundListener) bool { return slices.Contains(all, o) }))
	}
	return keep, func() { b.unbind(added) }, nil
}

// readdress makes known where clients find this broker, if that is not what is known.
func (b *Broker) readdress(ctx context.Context) error {
	v := b.view.Load()
	i, ok := v.find(b.nodeID)
	now := b.endpoints()
	if b.steward != nil {
		now = b.registered()
	}
	if !ok || slices.Equal(v.brokers[i].node.Endpoints, now) {
		return nil
	}
	if err := b.control.Readdress(ctx, now); err != nil {
		return err
	}
	seen := *v
	seen.brokers = slices.Clone(v.brokers)
	seen.brokers[i].node.Endpoints = now
	b.view.Store(&seen)
	return nil
}

// endpoints are the addresses that the broker registers with.
func (b *Broker) endpoints() []meta.Endpoint {
	all := b.settings().Advertised
	if len(all) == 0 {
		for _, l := range b.listeners.get() {
			all = append(all, l.Listener)
		}
	}
	if len(all) == 0 { // nothing is bound yet
		all = b.settings().Listeners
	}
	out := make([]meta.Endpoint, len(all))
	for i, l := range all {
		out[i] = meta.Endpoint{Listener: l.Name, Host: l.Host, Port: l.Port}
	}
	return out
}

// limits are those of connections. Host names among the overrides are looked up now.
func (b *Broker) limits(s *config.Server) wire.Limits {
	l := wire.Limits{MaxConns: int(s.MaxConnections), MaxConnsPerIP: int(s.MaxConnectionsPerIP)}
	for name, o := range s.OfListener {
		if o.MaxConnections > 0 {
			if l.PerListener == nil {
				l.PerListener = map[string]int{}
			}
			l.PerListener[name] = int(o.MaxConnections)
		}
	}
	for _, o := range s.ConnectionOverrides {
		for _, ip := range b.addresses(o.Host) {
			if l.PerIP == nil {
				l.PerIP = map[netip.Addr]int{}
			}
			l.PerIP[ip] = int(o.Limit)
		}
	}
	return l
}

// addresses are those of a host.
func (b *Broker) addresses(host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap().WithZone("")}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		b.logger.Warn("host of max.connections.per.ip.overrides is not known, its limit has no effect", "host", host, "error", err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}

// useConnectionSettings puts what is about connections into force. A nil server is not there yet.
func (b *Broker) useConnectionSettings(s *config.Server) {
	rates := map[string]float64{"": float64(s.ConnectionRate)}
	for name, l := range s.OfListener {
		if l.ConnectionRate > 0 {
			rates[name] = float64(l.ConnectionRate)
		}
	}
	b.quotas.SetAcceptRates(rates)
	if b.server != nil {
		b.server.SetLimits(b.limits(s))
	}
}

// switchTo puts next into force: new listeners first, which may fail, then what store keeps, then the rest. Broker.admin is held.
func (b *Broker) switchTo(ctx context.Context, next *config.Server, store func() error) error {
	keep, drop, err := b.changeListeners(next)
	if err != nil {
		return err
	}
	if err := store(); err != nil {
		drop()
		return err
	}
	b.useSettings(next)
	keep()
	err = b.readdress(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		b.logger.Error("new addresses are in force but could not be made known", "error", err)
	}
	return nil
}
