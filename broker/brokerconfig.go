package broker

import (
	"context"
	"errors"
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

// needsRestart are keys that Kafka changes at run time and this broker does not yet.
func needsRestart(key string) bool {
	switch key {
	case "listeners", "listener.security.protocol.map", "max.connections", "max.connections.per.ip",
		"num.recovery.threads.per.data.dir", "producer.id.expiration.ms":
		return true
	}
	return false
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
	look := func(key string) *config.Entry { return only(b.settings().DescribeBroker([]string{key})) }
	if *edited, err = change(*edited, look); err != nil {
		return err
	}
	if err := b.checkBrokerKeys(*edited); err != nil {
		return err
	}
	next, err := b.withDynamic(own, all)
	if err != nil || validateOnly {
		return err
	}
	if err := b.control.AlterBrokerConfig(ctx, node, *edited); err != nil {
		return err
	}
	b.useSettings(next)
	return nil
}

// checkBrokerKeys checks keys that are to be set at run time.
func (b *Broker) checkBrokerKeys(own map[string]string) error {
	var fixed []string
	for key, value := range own {
		e := only(b.conf.DescribeBroker([]string{key}))
		if e == nil || e.ReadOnly || needsRestart(key) {
			fixed = append(fixed, key)
			continue
		}
		if err := checkBrokerValue(key, value); err != nil {
			return err
		}
	}
	if fixed != nil {
		slices.Sort(fixed)
		return refuse(kerr.InvalidRequest, "Cannot update these configs dynamically: [%s]", strings.Join(fixed, ", "))
	}
	return nil
}

func checkBrokerValue(key, value string) error {
	_, _, err := config.NewServer(config.Layer{Values: map[string]string{key: value}})
	var wrong *config.ValueError
	if errors.As(err, &wrong) && wrong.Key == key {
		problem, _, _ := strings.Cut(strings.Replace(wrong.Problem, "not a number", "Not a number", 1), "; allowed")
		return refuse(kerr.InvalidRequest, "Invalid value %s for configuration %s: %s", value, key, problem)
	}
	return nil
}
