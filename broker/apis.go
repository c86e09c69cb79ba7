package broker

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/peers"
	"gregor/broker/twophase"
	"gregor/wire"
)

// api is one API key that this broker serves: its versions and its handler. The answer of ApiVersions and what package wire lets in both come from
// the one table.
type api struct {
	key      int16
	min, max int16
	handle   func(context.Context, *wire.Request) wire.Reply
}

// apiTable lists what is built, in the order of the keys.
func (b *Broker) apiTable() []api {
	table := []api{
		{0, 0, 13, b.handleProduce},
		{1, 0, 18, b.handleFetch},
		{2, 0, 11, answer(b.handleListOffsets)},
		{3, 0, 13, answer(b.handleMetadata)},
		{8, 0, 10, b.handleOffsetCommit},
		{9, 0, 10, answer(b.handleOffsetFetch)},
		{10, 0, 6, answer(b.handleFindCoordinator)},
		{11, 0, 9, b.handleJoinGroup},
		{12, 0, 4, b.handleHeartbeat},
		{13, 0, 5, b.handleLeaveGroup},
		{14, 0, 5, b.handleSyncGroup},
		{15, 0, 6, answer(b.handleDescribeGroups)},
		{16, 0, 5, answer(b.handleListGroups)},
		{18, 0, 5, answer(b.handleAPIVersions)},
		{19, 0, 7, answer(b.handleCreateTopics)},
		{20, 0, 6, answer(b.handleDeleteTopics)},
		{21, 0, 2, answer(b.handleDeleteRecords)},
		{22, 0, b.newestInit(), b.handleInitProducerID},
		{23, 0, 4, answer(b.handleOffsetForLeaderEpoch)},
		{24, 0, 5, b.handleAddPartitionsToTxn},
		{25, 0, 4, b.handleAddOffsetsToTxn},
		{26, 0, 5, b.handleEndTxn},
		{27, 0, 2, b.handleWriteTxnMarkers},
		{28, 0, 6, b.handleTxnOffsetCommit},
		{29, 0, 3, answer(b.handleDescribeACLs)},
		{30, 0, 3, answer(b.handleCreateACLs)},
		{31, 0, 3, answer(b.handleDeleteACLs)},
		{32, 0, 4, answer(b.handleDescribeConfigs)},
		{33, 0, 2, answer(b.handleAlterConfigs)},
		{34, 0, 2, answer(b.handleAlterReplicaLogDirs)},
		{35, 0, 5, answer(b.handleDescribeLogDirs)},
		{37, 0, 3, answer(b.handleCreatePartitions)},
		{38, 0, 3, answer(b.handleCreateToken)},
		{39, 0, 2, answer(b.handleRenewToken)},
		{40, 0, 2, answer(b.handleExpireToken)},
		{41, 0, 3, answer(b.handleDescribeTokens)},
		{42, 0, 3, b.handleDeleteGroups},
		{43, 0, 2, answer(b.handleElectLeaders)},
		{44, 0, 1, answer(b.handleIncrementalAlterConfigs)},
		{45, 0, 1, answer(b.handleAlterReassignments)},
		{46, 0, 0, answer(b.handleListReassignments)},
		{47, 0, 0, b.handleOffsetDelete},
		{48, 0, 1, answer(b.handleDescribeClientQuotas)},
		{49, 0, 1, answer(b.handleAlterClientQuotas)},
		{50, 0, 0, answer(b.handleDescribeScram)},
		{51, 0, 0, answer(b.handleAlterScram)},
		{57, 0, 2, answer(b.handleUpdateFeatures)},
		{60, 0, 2, answer(b.handleDescribeCluster)},
		{61, 0, 0, answer(b.handleDescribeProducers)},
		{64, 0, 0, answer(b.handleUnregisterBroker)},
		{65, 0, 0, answer(b.handleDescribeTransactions)},
		{66, 0, 2, answer(b.handleListTransactions)},
		{71, 0, 0, answer(b.handleGetTelemetry)},
		{72, 0, 0, answer(b.handlePushTelemetry)},
		{74, 0, 1, answer(b.handleListConfigResources)},
		{75, 0, 0, answer(b.handleDescribeTopicPartitions)},
	}
	if b.shared {
		table = append(table, b.ordersTable()...)
		slices.SortFunc(table, func(a, b api) int { return int(a.key) - int(b.key) })
	}
	return table
}

// ordersTable lists what controllers and brokers of a cluster ask of each other. A broker on a tree of its own is nobody's to order about.
func (b *Broker) ordersTable() []api {
	return []api{
		{4, 0, 7, answer(b.handleLeaderAndISR)},
		{5, 0, 4, answer(b.handleStopReplica)},
		{6, 0, 8, answer(b.handleUpdateMetadata)},
		{7, 0, 3, answer(b.handleControlledShutdown)},
		{67, 0, 0, answer(b.handleAllocateProducerIDs)},
	}
}

// share makes the broker one of a cluster, or not. It must not serve yet.
func (b *Broker) share(shared bool) {
	b.shared = shared
	b.apis = b.apiTable()
	b.byKey = indexAPIs(b.apis)
}

// newBody makes the bodies of requests that kmsg does not know, or has otherwise than Kafka; nil for all others.
func newBody(key, version int16) kmsg.Request {
	if body := peers.NewBody(key, version); body != nil {
		return body
	}
	return twophase.NewBody(key, version)
}

// answer makes a handler of a function that always has its answer at once. A throttle time in it holds the client up.
func answer[R kmsg.Request](h func(context.Context, *wire.Request, R) kmsg.Response) func(context.Context, *wire.Request) wire.Reply {
	return func(ctx context.Context, req *wire.Request) wire.Reply {
		resp := h(ctx, req, req.Body.(R))
		reply := wire.Reply{Body: wire.Message(resp)}
		if t, ok := resp.(kmsg.ThrottleResponse); ok {
			millis, _ := t.Throttle()
			reply.Mute = time.Duration(millis) * time.Millisecond
		}
		return reply
	}
}

// Handle implements wire.Handler.
func (b *Broker) Handle(ctx context.Context, req *wire.Request) wire.Reply {
	a := b.api(req.Key)
	if a == nil {
		return wire.Reply{Close: "no handler for this key"}
	}
	began := b.measureFrom()
	return b.account(req, a.handle(ctx, req), began)
}

// supports implements wire.Config.Supports.
func (b *Broker) supports(key int16) (minVersion, maxVersion int16, ok bool) {
	a := b.api(key)
	if a == nil {
		return 0, 0, false
	}
	return a.min, a.max, true
}

func (b *Broker) api(key int16) *api {
	if key < 0 || int(key) >= len(b.byKey) {
		return nil
	}
	return b.byKey[key]
}

// indexAPIs makes the table that api looks in.
func indexAPIs(table []api) []*api {
	byKey := make([]*api, table[len(table)-1].key+1)
	for i := range table {
		byKey[table[i].key] = &table[i]
	}
	return byKey
}
