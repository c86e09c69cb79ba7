package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/broker/controller"
)

// settings is the configuration with what was changed at run time. What Start needed stays in conf.
func (b *Broker) settings() *config.Server {
	if s := b.dynamic.Load(); s != nil {
		return s
	}
	return b.conf
}

// loadDynamic reads what was set at run time before, and puts it into force. Called by Start, before the topics are opened.
func (b *Broker) loadDynamic(ctx context.Context) error {
	own, err := b.control.BrokerConfig(ctx, controller.BrokerName(b.nodeID))
	if err != nil {
		return err
	}
	all, err := b.control.BrokerConfig(ctx, controller.ClusterDefault)
	if err != nil || len(own) == 0 && len(all) == 0 {
		return err
	}
	next, err := b.withDynamic(own, all)
	if err != nil {
		return err
	}
	b.dynamic.Store(next)
	return nil
}

// withDynamic is the configuration with keys that were set at run time, for this broker and for all.
func (b *Broker) withDynamic(own, all map[string]string) (*config.Server, error) {
	layers := append([]config.Layer{
		{Origin: "broker configuration", Source: config.SourceDynamicBroker, Values: own},
		{Origin: "cluster configuration", Source: config.SourceDynamicDefault, Values: all},
	}, b.layers...)
	s, _, err := config.NewServer(layers...)
	return s, err
}

// alterBroker changes the keys that are set at run time for this broker, or, with the empty name, for all, and what follows from them in the topics.
func (b *Broker) alterBroker(ctx context.Context, name string, validateOnly bool, change change) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	own, err := b.control.BrokerConfig(ctx, controller.BrokerName(b.nodeID))
	if err != nil {
		return err
	}
	all, err := b.control.BrokerConfig(ctx, controller.ClusterDefault)
	if err != nil {
		return err
	}
	node, edited := controller.BrokerName(b.nodeID), &own
	if name == "" {
		node, edited = controller.ClusterDefault, &all
	}
	before := maps.Clone(*edited)
	look := func(key string) *config.Entry { return only(b.settings().DescribeBroker([]string{key})) }
	if *edited, err = change(*edited, look); err != nil {
		return err
	}
	if err := checkBrokerKeys(*edited, name == ""); err != nil {
		return err
	}
	next, err := b.withDynamic(own, all)
	if err != nil {
		return wrongValue(err, *edited)
	}
	if validateOnly {
		return nil
	}
	err = b.switchTo(ctx, next, func() error { return b.control.AlterBrokerConfig(ctx, node, *edited) })
	if err == nil {
		b.warnOfIdle(differing(before, *edited))
	}
	return err
}

// warnOfIdle names keys that were changed and do nothing: an answer without an error is all that their owner hears otherwise.
func (b *Broker) warnOfIdle(keys []string) {
	for _, key := range keys {
		if why := config.WithoutEffect(key); why != "" {
			b.logger.Warn("setting without effect", "key", key, "from", "configuration at run time", "what", why)
		}
	}
}

// checkBrokerKeys checks keys that are to be set at run time, for one broker or as the default of all. What nobody knows is accepted, as in Kafka, where
// it may be for a plugin.
func checkBrokerKeys(own map[string]string, forAll bool) error {
	names := slices.Sorted(maps.Keys(own))
	for _, group := range []struct {
		has  func(key string) bool
		text string
	}{
		{config.IsFixed, "Cannot update these configs dynamically: [%s]"},
		{config.IsOfListener, "These security configs can be dynamically updated only per-listener using the listener prefix: [%s]"},
		{config.IsSecret, "These configs are not supported, because TLS and authentication are not built yet: [%s]"},
	} {
		if found := filter(names, group.has); len(found) > 0 {
			return refuse(kerr.InvalidRequest, group.text, strings.Join(found, ", "))
		}
	}
	for _, name := range names {
		if err := config.CheckValue(name, own[name]); err != nil {
			return wrongValue(err, nil)
		}
	}
	if found := filter(names, config.IsPerBroker); forAll && len(found) > 0 {
		return refuse(kerr.InvalidRequest, "Cannot update these configs at default cluster level, broker id must be specified: [%s]", strings.Join(found, ", "))
	}
	return nil
}

func filter(names []string, has func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has(name) })
}

// wrongValue is a *config.ValueError in Kafka's words. Its value is that of set, where it is from there.
func wrongValue(err error, set map[string]string) error {
	var wrong *config.ValueError
	if !errors.As(err, &wrong) {
		return err
	}
	value, ok := set[wrong.Key]
	if !ok {
		value = wrong.Value
	}
	return refuse(kerr.InvalidRequest, "Invalid value %s for configuration %s: %s", value, wrong.Key, wrong.Problem)
}
