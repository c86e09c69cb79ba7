package broker

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/wire"
)

// DescribeConfigs (key 32), versions 0 to 4.
//
//   - Resources are topics, this broker by its id, and with the empty name what is set for all brokers at run time. Each fails by itself.
//   - No names, null or an empty list, means all keys; unknown ones are left out.
//   - A resource that is there several times is described once; otherwise a small request could ask for an answer of any size.
//   - v1 has sources and synonyms instead of is_default, v3 types and documentation. Synonyms and documentation come when asked for.

func (b *Broker) handleDescribeConfigs(ctx context.Context, _ *wire.Request, r *kmsg.DescribeConfigsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	seen := make(map[resource]bool, len(r.Resources))
	for i := range r.Resources {
		in := &r.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		var entries []config.Entry
		err := resourceTwice()
		if res := (resource{in.ResourceType, in.ResourceName}); !seen[res] {
			seen[res] = true
			entries, err = b.describeResource(ctx, in)
		}
		out.ErrorCode = code(err)
		out.ErrorMessage = new(string) // Kafka's answer is empty, not null
		if text := errorText(err); text != nil {
			out.ErrorMessage = text
		}
		out.Configs = make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(entries))
		for j := range entries {
			out.Configs = append(out.Configs, describedConfig(r, &entries[j]))
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

func (b *Broker) describeResource(ctx context.Context, in *kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	names := in.ConfigNames
	if len(names) == 0 {
		names = nil
	}
	switch in.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		t, err := b.configuredTopic(in.ResourceName)
		if err != nil {
			return nil, err
		}
		return b.settings().DescribeTopic(t.ownKeys(), names), nil
	case kmsg.ConfigResourceTypeBroker:
		if in.ResourceName == "" {
			own, err := b.control.BrokerConfig(ctx, controller.ClusterDefault)
			return b.describeDefaults(own, names), err
		}
		if err := b.checkBrokerName(in.ResourceName); err != nil {
			return nil, err
		}
		return b.describeBroker(names), nil
	case resourceClientMetrics:
		if in.ResourceName == "" {
			return nil, refuse(kerr.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return config.DescribeClientMetrics(b.clientMetrics.own(in.ResourceName), names), nil
	case resourceGroup:
		if in.ResourceName == "" {
			return nil, refuse(kerr.InvalidRequest, "Group name must not be empty")
		}
		return b.settings().DescribeGroup(b.groupConfigs.own(in.ResourceName), names), nil
	case kmsg.ConfigResourceTypeBrokerLogger:
		if in.ResourceName == "" {
			return nil, refuse(kerr.InvalidRequest, "Broker id must not be empty")
		}
		if id, err := strconv.ParseInt(in.ResourceName, 10, 32); err == nil && int32(id) != b.nodeID {
			return nil, refuse(kerr.InvalidRequest, "Unexpected broker id, expected %d but received %s", b.nodeID, in.ResourceName)
		}
		if err := b.checkBrokerName(in.ResourceName); err != nil {
			return nil, err
		}
		return b.describeLoggers(names), nil
	}
	return nil, kerr.InvalidRequest
}

func unsupportedResource(kind kmsg.ConfigResourceType) error {
	return refuse(kerr.InvalidRequest, "Unknown resource type %d", kind)
}

// configuredTopic finds a topic whose configuration is asked for.
func (b *Broker) configuredTopic(name string) (*topic, error) {
	if t := b.topics.name(name); t != nil {
		return t, nil
	}
	if err := controller.CheckName(name); err != nil {
		return nil, err
	}
	return nil, refuse(kerr.UnknownTopicOrPartition, "") // clients have a text of their own
}

// checkBrokerName checks that a resource is this broker.
func (b *Broker) checkBrokerName(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return refuse(kerr.InvalidRequest, "Broker id must be an integer, but it is: %s", name)
	}
	if int32(id) != b.nodeID {
		return refuse(kerr.InvalidRequest, "Unexpected broker id, expected %d or empty string, but received %s", b.nodeID, name)
	}
	return nil
}

// describeBroker describes this broker. An id that the broker chose itself is shown as if it were given.
func (b *Broker) describeBroker(names []string) []config.Entry {
	entries := b.settings().DescribeBroker(names)
	for i := range entries {
		if e := &entries[i]; b.conf.NodeID < 0 && (e.Name == "broker.id" || e.Name == "node.id") {
			id := controller.BrokerName(b.nodeID)
			e.Value = &id
		}
	}
	return entries
}

// describeDefaults describes what is set for all brokers at run time.
func (b *Broker) describeDefaults(own map[string]string, names []string) []config.Entry {
	var entries []config.Entry
	for _, e := range b.settings().DescribeBroker(slices.Collect(maps.Keys(own))) {
		if names != nil && !slices.Contains(names, e.Name) || len(own) == 0 {
			continue
		}
		value := own[e.Name]
		e.Value, e.Source = &value, config.SourceDynamicDefault
		if e.Sensitive {
			e.Value = nil
		}
		e.Synonyms = []config.Synonym{{Name: e.Name, Value: e.Value, Source: e.Source}}
		entries = append(entries, e)
	}
	return entries
}

func describedConfig(r *kmsg.DescribeConfigsRequest, e *config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value = e.Name, e.Value
	out.ReadOnly, out.IsSensitive = e.ReadOnly, e.Sensitive
	out.IsDefault = e.Source == config.SourceDefault
	out.Source, out.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	out.ConfigSynonyms = []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{}
	if r.IncludeSynonyms {
		for _, s := range e.Synonyms {
			syn := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			syn.Name, syn.Value, syn.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			out.ConfigSynonyms = append(out.ConfigSynonyms, syn)
		}
	}
	if r.IncludeDocumentation {
		out.Documentation = &e.Documentation
	}
	return out
}
