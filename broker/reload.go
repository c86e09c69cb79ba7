package broker

import (
	"context"
	"maps"
	"slices"

	"gregor/broker/config"
	"gregor/broker/controller"
)

// Reloaded says what became of settings that were read again.
type Reloaded struct {
	Applied []string // keys with another value than before, which is in force now
	Restart []string // keys whose other value counts from the next start
	Unknown []string // keys with another value that have no effect here
}

// Reload takes the static settings as they are now, the strongest layer first as in Config.Layers, and puts into force what can change while
// the broker runs. What was set at run time through the protocol stays stronger. A wrong value is an error, and then nothing changes.
func (b *Broker) Reload(ctx context.Context, layers ...config.Layer) (Reloaded, error) {
	b.admin.Lock()
	defer b.admin.Unlock()
	if _, _, err := config.NewServer(layers...); err != nil {
		return Reloaded{}, err
	}
	old, now := config.Merge(b.layers...), config.Merge(layers...)
	var r Reloaded
	for _, key := range differing(old, now) {
		switch {
		case config.WithoutEffect(key) != "":
			r.Unknown = append(r.Unknown, key)
			continue
		case !config.IsFixed(key):
			r.Applied = append(r.Applied, key)
			continue
		}
		r.Restart = append(r.Restart, key)
		delete(now, key)
		if value, ok := old[key]; ok {
			now[key] = value
		}
	}
	if err := b.putIntoForce(ctx, config.Layer{Origin: "settings read again", Values: now}); err != nil {
		return Reloaded{}, err
	}
	return r, nil
}

// putIntoForce makes a layer all of the static settings. Broker.admin is held.
func (b *Broker) putIntoForce(ctx context.Context, static config.Layer) error {
	own, err := b.control.BrokerConfig(ctx, controller.BrokerName(b.nodeID))
	if err != nil {
		return err
	}
	all, err := b.control.BrokerConfig(ctx, controller.ClusterDefault)
	if err != nil {
		return err
	}
	before := b.layers
	b.layers = []config.Layer{static}
	next, err := b.withDynamic(own, all)
	if err != nil {
		b.layers = before
		return err
	}
	err = b.switchTo(ctx, next, func() error { return nil })
	if err != nil {
		b.layers = before
	}
	return err
}

// useSettings makes s the settings, and those of the topics what follows from it. Broker.admin is held.
func (b *Broker) useSettings(s *config.Server) {
	b.dynamic.Store(s)
	b.useConnectionSettings(s)
	b.dir.SetParallel(b.recoverers())
	for _, t := range b.topics.all() {
		effective, err := s.Topic(t.ownKeys())
		if err != nil {
			b.logger.Warn("topic keeps its configuration, which the new broker configuration does not go with", "topic", t.name, "error", err)
			continue
		}
		t.configure(t.ownKeys(), effective)
	}
	b.retentionChanged()
	b.cleaner.settingsChanged()
}

// differing are the keys whose values are not the same in both, sorted.
func differing(a, b map[string]string) []string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for key := range keys {
		va, inA := a[key]
		vb, inB := b[key]
		if inA == inB && va == vb {
			delete(keys, key)
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
