package broker

import (
	"context"
	"errors"
	"strings"
	"time"

	"gregor/broker/controller"
	"gregor/broker/meta"
)

// keepNotification is how long a notification stays for brokers that have not seen it, as in Kafka.
const keepNotification = 15 * time.Minute

// configChanges is what a broker has seen of /config/changes.
type configChanges struct {
	all  bool                 // everything is to be read again: some may have been missed
	seen map[string]time.Time // when each was first seen
}

// followConfigs reads again what others changed. The first look takes what is there as known: everything was read after the watch was set.
func (s *steward) followConfigs(ctx context.Context) error {
	if err := s.b.control.SameCluster(ctx); err != nil {
		return err // no keys are not the default ones: retention would delete by them
	}
	names, err := s.tree.Children(ctx, meta.ConfigChangesPath)
	if err != nil {
		return err
	}
	first := s.configs.seen == nil
	all := s.configs.all || first
	now, seen := s.b.now(), make(map[string]time.Time, len(names))
	changed := map[string]bool{}
	for _, name := range names {
		path := meta.ConfigChangesPath + "/" + name
		at, known := s.configs.seen[name]
		switch {
		case !known:
			at = now
			if !all {
				if err := s.readChange(ctx, path, changed); err != nil {
					return err
				}
			}
		case now.Sub(at) > keepNotification:
			if err := s.drop(ctx, path); err != nil {
				return err
			}
			continue
		}
		seen[name] = at
	}
	if all {
		err = s.readAllConfigs(ctx)
	} else {
		err = s.readConfigs(ctx, changed)
	}
	if err == nil {
		s.configs = configChanges{seen: seen}
	}
	return err
}

// readChange adds the entity of one notification.
func (s *steward) readChange(ctx context.Context, path string, changed map[string]bool) error {
	data, _, err := s.tree.Get(ctx, path)
	if isNoNode(err) {
		return nil // kept for long enough, and removed by another
	}
	if err != nil {
		return err
	}
	change, err := meta.DecodeConfigChange(data)
	if err != nil {
		s.logger.Error("notification of a changed configuration cannot be read", "node", path, "error", err)
		return nil
	}
	changed[change.Entity] = true
	return nil
}

// readConfigs puts into force what entities have now.
func (s *steward) readConfigs(ctx context.Context, entities map[string]bool) error {
	b := s.b
	b.admin.Lock()
	defer b.admin.Unlock()
	for entity := range entities {
		kind, name, _ := strings.Cut(entity, "/")
		var err error
		switch kind {
		case "topics":
			err = s.readTopicConfig(ctx, name)
		case "brokers":
			if name == controller.ClusterDefault || name == controller.BrokerName(b.nodeID) {
				err = b.reloadDynamic(ctx)
			}
		case "users", "clients", "ips":
			err = b.loadQuota(ctx, "/config/"+entity)
		case string(controller.ClientMetrics):
			err = b.loadClientMetrics(ctx)
		case string(controller.Groups):
			err = b.loadGroupConfigs(ctx)
		default:
			s.logger.Warn("configuration of an unknown kind was changed", "entity", entity)
		}
		if err != nil && !s.asBefore(err) {
			return err
		}
	}
	return nil
}

// asBefore says whether err is that of a configuration which a tool wrote badly: what was in force stays so, and others go on.
func (s *steward) asBefore(err error) bool {
	if !errors.Is(err, meta.ErrBadNode) {
		return false
	}
	s.logger.Error("configuration cannot be read; what was in force stays in force", "error", err)
	return true
}

// readAllConfigs puts into force what everything has now.
func (s *steward) readAllConfigs(ctx context.Context) error {
	b := s.b
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.reloadDynamic(ctx); err != nil && !s.asBefore(err) {
		return err
	}
	if err := b.loadQuotas(ctx); err != nil {
		return err
	}
	topics := b.topics.all()
	owns := make([]map[string]string, len(topics))
	err := controller.InParallel(len(topics), func(i int) (err error) {
		owns[i], err = b.control.TopicConfig(ctx, topics[i].name)
		if err != nil && s.asBefore(err) {
			owns[i] = nil
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, t := range topics {
		if owns[i] != nil {
			b.reconfigure(t, owns[i])
		}
	}
	return nil
}

// readTopicConfig needs admin.
func (s *steward) readTopicConfig(ctx context.Context, name string) error {
	t := s.b.topics.name(name)
	if t == nil {
		return nil // read when the topic comes
	}
	own, err := s.b.control.TopicConfig(ctx, name)
	if err == nil {
		s.b.reconfigure(t, own)
	}
	return err
}

// reloadDynamic puts into force what is set for this broker and for all. Needs admin.
func (b *Broker) reloadDynamic(ctx context.Context) error {
	own, err := b.control.BrokerConfig(ctx, controller.BrokerName(b.nodeID))
	if err != nil {
		return err
	}
	all, err := b.control.BrokerConfig(ctx, controller.ClusterDefault)
	if err != nil {
		return err
	}
	next, err := b.withDynamic(own, all)
	if err != nil {
		b.logger.Error("configuration that another set for this broker is not valid, and is not in force", "error", err)
		return nil
	}
	if err := b.switchTo(ctx, next, func() error { return nil }); err != nil {
		b.logger.Error("configuration that another set for this broker cannot be put into force", "error", err)
	}
	return nil
}
