package broker

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/broker/controller"
)

// clientMetrics are the subscriptions of client metrics (KIP-714) that tools set as resources of type CLIENT_METRICS.
type clientMetrics struct {
	mu      sync.Mutex // a leaf
	all     map[string]clientSubscription
	changes uint64
}

// clientSubscription is one subscription. It does not change.
type clientSubscription struct {
	name string
	own  map[string]string // as they were given
	config.ClientMetrics
}

// subscriptions returns all, sorted by name, and a number that is another one after each change.
func (m *clientMetrics) subscriptions() ([]clientSubscription, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]clientSubscription, 0, len(m.all))
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		all = append(all, m.all[name])
	}
	return all, m.changes
}

// own returns the keys of a subscription, none if there is no such one.
func (m *clientMetrics) own(name string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.all[name].own)
}

// set takes a subscription in, in place of an older one; without keys it goes.
func (m *clientMetrics) set(name string, own map[string]string, effective config.ClientMetrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	if len(own) == 0 {
		delete(m.all, name)
		return
	}
	if m.all == nil {
		m.all = map[string]clientSubscription{}
	}
	m.all[name] = clientSubscription{name: name, own: own, ClientMetrics: effective}
}

// replace takes all subscriptions in, in place of those that there were.
func (m *clientMetrics) replace(all map[string]clientSubscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	m.all = all
}

// loadClientMetrics reads the subscriptions from the tree.
func (b *Broker) loadClientMetrics(ctx context.Context) error {
	found, err := b.control.Resources(ctx, controller.ClientMetrics)
	if err != nil {
		return err
	}
	all := make(map[string]clientSubscription, len(found))
	for name, own := range found {
		effective, err := config.NewClientMetrics(own)
		if err != nil {
			b.logger.Warn("subscription of client metrics is not valid and has no effect", "subscription", name, "error", err)
			continue
		}
		all[name] = clientSubscription{name: name, own: own, ClientMetrics: effective}
	}
	b.clientMetrics.replace(all)
	return nil
}

// alterClientMetrics changes the keys of one subscription.
func (b *Broker) alterClientMetrics(ctx context.Context, name string, validateOnly bool, change change) error {
	if name == "" {
		return refuse(kerr.InvalidRequest, "Subscription name can't be empty")
	}
	b.admin.Lock()
	defer b.admin.Unlock()
	// Kafka knows no lists to add to here.
	own, err := change(kept(b.clientMetrics.own(name)), func(string) *config.Entry { return nil })
	if err != nil {
		return err
	}
	effective, err := config.NewClientMetrics(own)
	if err != nil {
		return resourceRefused(err)
	}
	if validateOnly {
		return nil
	}
	if err := b.control.AlterResource(ctx, controller.ClientMetrics, name, own); err != nil {
		return err
	}
	b.clientMetrics.set(name, own, effective)
	return nil
}

// kept is a map that can be written to.
func kept(own map[string]string) map[string]string {
	if own == nil {
		return map[string]string{}
	}
	return own
}
