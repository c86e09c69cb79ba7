package broker

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/broker/controller"
)

// groupConfigs are the keys that tools set for groups, as resources of type GROUP (KIP-848, KIP-932, KIP-1071). A group need not exist.
type groupConfigs struct {
	mu  sync.Mutex // a leaf
	all map[string]map[string]string
}

// own returns the keys of a group, none if it has none.
func (g *groupConfigs) own(name string) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.all[name])
}

// names are the groups that have keys.
func (g *groupConfigs) names() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name := range g.all {
		names = append(names, name)
	}
	return names
}

func (g *groupConfigs) set(name string, own map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(own) == 0 {
		delete(g.all, name)
		return
	}
	if g.all == nil {
		g.all = map[string]map[string]string{}
	}
	g.all[name] = own
}

// replace takes the keys of all groups in, in place of those that there were.
func (g *groupConfigs) replace(all map[string]map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = all
}

// loadGroupConfigs reads them from the tree.
func (b *Broker) loadGroupConfigs(ctx context.Context) error {
	all, err := b.control.Resources(ctx, controller.Groups)
	if err == nil {
		b.groupConfigs.replace(all)
	}
	return err
}

// alterGroupKeys changes the keys of one group.
func (b *Broker) alterGroupKeys(ctx context.Context, name string, validateOnly bool, change change) error {
	if name == "" {
		return refuse(kerr.InvalidRequest, "Default group resources are not allowed.")
	}
	b.admin.Lock()
	defer b.admin.Unlock()
	// Kafka knows no lists to add to here either.
	own, err := change(kept(b.groupConfigs.own(name)), func(string) *config.Entry { return nil })
	if err != nil {
		return err
	}
	if err := b.settings().ValidateGroup(own); err != nil {
		return resourceRefused(err)
	}
	if validateOnly {
		return nil
	}
	if err := b.control.AlterResource(ctx, controller.Groups, name, own); err != nil {
		return err
	}
	b.groupConfigs.set(name, own)
	return nil
}

// resourceRefused gives a *config.ResourceError Kafka's code.
func resourceRefused(err error) error {
	var wrong *config.ResourceError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Request:
		return refuse(kerr.InvalidRequest, "%s", wrong.Error())
	}
	return refuse(kerr.InvalidConfig, "%s", wrong.Error())
}
