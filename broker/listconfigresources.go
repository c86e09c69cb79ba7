package broker

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/wire"
)

// ListConfigResources (key 74), versions 0 and 1: the resources whose configuration can be described. v0 asks for client metrics only (KIP-714's
// subscriptions), v1 names the types; none means all (KIP-1142).

func (b *Broker) handleListConfigResources(_ context.Context, _ *wire.Request, r *kmsg.ListConfigResourcesRequest) kmsg.Response {
	resp := kmsg.NewPtrListConfigResourcesResponse()
	resp.ConfigResources = []kmsg.ListConfigResourcesResponseConfigResource{}
	known := []int8{int8(kmsg.ConfigResourceTypeTopic), int8(kmsg.ConfigResourceTypeBroker), int8(kmsg.ConfigResourceTypeBrokerLogger), int8(resourceClientMetrics), int8(resourceGroup)}
	kinds := r.ResourceTypes
	switch {
	case r.Version == 0:
		kinds = []int8{int8(resourceClientMetrics)}
	case len(kinds) == 0:
		kinds = known
	}
	for _, kind := range known {
		if !slices.Contains(kinds, kind) {
			continue
		}
		for _, name := range b.configResources(kmsg.ConfigResourceType(kind)) {
			out := kmsg.NewListConfigResourcesResponseConfigResource()
			out.Name, out.Type = name, kind
			resp.ConfigResources = append(resp.ConfigResources, out)
		}
	}
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			resp.ConfigResources, resp.ErrorCode = resp.ConfigResources[:0], kerr.UnsupportedVersion.Code
		}
	}
	return resp
}

// configResources are the names of one type; of groups and client metrics those that have keys.
func (b *Broker) configResources(kind kmsg.ConfigResourceType) (names []string) {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		for _, t := range b.topics.all() {
			names = append(names, t.name)
		}
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		names = append(names, controller.BrokerName(b.nodeID))
	case resourceClientMetrics:
		all, _ := b.clientMetrics.subscriptions()
		for i := range all {
			names = append(names, all[i].name)
		}
	case resourceGroup:
		names = b.groupConfigs.names()
	}
	return names
}
