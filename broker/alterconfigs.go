package broker

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/config"
	"gregor/wire"
)

// AlterConfigs (key 33), versions 0 to 2, replaces all keys of a resource. IncrementalAlterConfigs (key 44), versions 0 and 1, changes single ones
// (KIP-339). Resources are topics, this broker by its id, and with the empty name all brokers. A resource is changed as a whole or not at all, and
// each fails by itself. What is answered without an error is durable and in force.

// Types of resources by Kafka's names for them, where kmsg has others.
const (
	resourceClientMetrics = kmsg.ConfigResourceTypeClientMetrics
	resourceGroup         = kmsg.ConfigResourceTypeGroupConfig
)

// maxConfigValue is the longest value that Kafka keeps, in bytes.
const maxConfigValue = 32767

// change makes the new set of a resource's own keys from the present one, which it may change. Type and effective value of a key come from look.
type change func(own map[string]string, look func(key string) *config.Entry) (map[string]string, error)

// resource is what a request names.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

func (b *Broker) handleAlterConfigs(ctx context.Context, _ *wire.Request, r *kmsg.AlterConfigsRequest) kmsg.Response {
	resp := kmsg.NewPtrAlterConfigsResponse()
	twice := repeated(r.Resources, func(in *kmsg.AlterConfigsRequestResource) resource { return resource{in.ResourceType, in.ResourceName} })
	for i := range r.Resources {
		in := &r.Resources[i]
		res := resource{in.ResourceType, in.ResourceName}
		err := b.alterResource(ctx, res, twice[res], r.ValidateOnly, func(map[string]string, func(string) *config.Entry) (map[string]string, error) {
			return replacement(in.Configs)
		})
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		out.ErrorCode, out.ErrorMessage = code(err), errorText(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

func (b *Broker) handleIncrementalAlterConfigs(ctx context.Context, _ *wire.Request, r *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	twice := repeated(r.Resources, func(in *kmsg.IncrementalAlterConfigsRequestResource) resource {
		return resource{in.ResourceType, in.ResourceName}
	})
	for i := range r.Resources {
		in := &r.Resources[i]
		res := resource{in.ResourceType, in.ResourceName}
		err := b.incrementResource(ctx, in, twice[res], r.ValidateOnly)
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		out.ErrorCode, out.ErrorMessage = code(err), errorText(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// incrementResource changes single keys of one resource.
func (b *Broker) incrementResource(ctx context.Context, in *kmsg.IncrementalAlterConfigsRequestResource, twice, validateOnly bool) error {
	if in.ResourceType == kmsg.ConfigResourceTypeBrokerLogger && !twice {
		if err := b.checkLoggerNode(in.ResourceName); err != nil {
			return err
		}
		return b.alterLoggers(in.Configs, validateOnly)
	}
	res := resource{in.ResourceType, in.ResourceName}
	return b.alterResource(ctx, res, twice, validateOnly, func(own map[string]string, look func(string) *config.Entry) (map[string]string, error) {
		return increment(own, in.Configs, look)
	})
}

// alterResource changes one resource.
func (b *Broker) alterResource(ctx context.Context, res resource, twice, validateOnly bool, change change) error {
	if twice {
		return resourceTwice()
	}
	switch res.kind {
	case kmsg.ConfigResourceTypeTopic:
		return b.alterTopicKeys(ctx, res.name, validateOnly, change)
	case kmsg.ConfigResourceTypeBroker:
		if res.name != "" {
			if err := b.checkNodeName(res.name); err != nil {
				return err
			}
		}
		return b.alterBroker(ctx, res.name, validateOnly, change)
	case resourceClientMetrics:
		return b.alterClientMetrics(ctx, res.name, validateOnly, change)
	case resourceGroup:
		return b.alterGroupKeys(ctx, res.name, validateOnly, change)
	}
	return unsupportedResource(res.kind)
}

// checkNodeName checks that a resource to be altered is this broker.
func (b *Broker) checkNodeName(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return refuse(kerr.InvalidRequest, "Node id must be an integer, but it is: %s", name)
	}
	if int32(id) != b.nodeID {
		return refuse(kerr.InvalidRequest, "Unexpected broker id, expected %d, but received %s", b.nodeID, name)
	}
	return nil
}

func resourceTwice() error {
	return refuse(kerr.InvalidRequest, "Each resource must appear at most once.")
}

func (b *Broker) alterTopicKeys(ctx context.Context, name string, validateOnly bool, change change) error {
	if name == "" {
		return refuse(kerr.InvalidRequest, "Default topic resources are not allowed.")
	}
	if _, err := b.configuredTopic(name); code(err) == kerr.UnknownTopicOrPartition.Code {
		return refuse(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
	} else if err != nil {
		return err
	}
	return b.alterTopic(ctx, name, validateOnly, func(own map[string]string) (map[string]string, error) {
		own, err := change(own, func(key string) *config.Entry {
			return only(b.settings().DescribeTopic(own, []string{key}))
		})
		if err != nil {
			return nil, err
		}
		if _, err := b.settings().Topic(own); err != nil {
			return nil, refuse(kerr.InvalidConfig, "%s", err.Error())
		}
		return own, nil
	})
}

// only is the entry of a list of one, nil for an empty list.
func only(entries []config.Entry) *config.Entry {
	if len(entries) == 0 {
		return nil
	}
	return &entries[0]
}

// replacement is the set that AlterConfigs asks for.
func replacement(given []kmsg.AlterConfigsRequestResourceConfig) (map[string]string, error) {
	own := make(map[string]string, len(given))
	for _, c := range given {
		if _, ok := own[c.Name]; ok {
			return nil, duplicateKey()
		}
		if err := checkValue(c.Name, c.Value); err != nil {
			return nil, err
		}
		own[c.Name] = *c.Value
	}
	return own, nil
}

func duplicateKey() error { return refuse(kerr.InvalidRequest, "Error due to duplicate config keys") }

func checkValue(key string, value *string) error {
	if value == nil {
		return refuse(kerr.InvalidRequest, "Null value not supported for : %s", key)
	}
	if len(*value) > maxConfigValue {
		return refuse(kerr.InvalidConfig, "The value of %s is longer than %d bytes.", key, maxConfigValue)
	}
	return nil
}

// increment applies the operations of IncrementalAlterConfigs.
func increment(own map[string]string, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig, look func(string) *config.Entry) (map[string]string, error) {
	if len(repeated(ops, func(c *kmsg.IncrementalAlterConfigsRequestResourceConfig) string { return c.Name })) > 0 {
		return nil, duplicateKey()
	}
	for _, c := range ops {
		if c.Op == kmsg.IncrementalAlterConfigOpDelete {
			delete(own, c.Name)
			continue
		}
		if err := checkValue(c.Name, c.Value); err != nil {
			return nil, err
		}
		value := *c.Value
		switch c.Op {
		case kmsg.IncrementalAlterConfigOpSet:
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			e := look(c.Name)
			if e == nil || e.Type != config.List {
				return nil, refuse(kerr.InvalidConfig, "Can't %s to key %s because its type is not LIST.", c.Op, c.Name)
			}
			value = editList(e.Value, value, c.Op == kmsg.IncrementalAlterConfigOpAppend)
			if err := checkValue(c.Name, &value); err != nil {
				return nil, err
			}
		default:
			return nil, refuse(kerr.InvalidRequest, "Unknown operation type %d for %s", int8(c.Op), c.Name)
		}
		own[c.Name] = value
	}
	return own, nil
}

// editList adds items to a comma-separated list, or takes them out of it.
func editList(list *string, items string, add bool) string {
	var have []string
	if list != nil {
		have = parts(*list)
	}
	changed := parts(items)
	isChanged := make(map[string]bool, len(changed))
	for _, item := range changed {
		isChanged[item] = true
	}
	if !add {
		have = slices.DeleteFunc(have, func(item string) bool { return isChanged[item] })
		return strings.Join(have, ",")
	}
	for _, item := range have {
		isChanged[item] = false
	}
	for _, item := range changed {
		if isChanged[item] {
			isChanged[item] = false
			have = append(have, item)
		}
	}
	return strings.Join(have, ",")
}

func parts(list string) []string {
	var out []string
	for p := range strings.SplitSeq(list, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
