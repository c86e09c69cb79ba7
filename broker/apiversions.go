package broker

import (
	"context"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// ApiVersions (key 18), versions 0 to 5.
//
//   - Only what is built is listed. Produce is listed from 0 because librdkafka takes the codecs it may use from that.
//   - A version that we do not know never comes here: package wire answers it with version 0 and UNSUPPORTED_VERSION.
//   - v3 names the client's software, which must look like a name; v5 may name the cluster and node it wants to talk to.
//   - transaction.version is finalized at 2: with it clients of Kafka 4 and later expect what KIP-890 says. group.version and the like are not.

func (b *Broker) handleAPIVersions(_ context.Context, _ *wire.Request, r *kmsg.ApiVersionsRequest) kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	b.features(resp, r.Version)
	switch {
	case r.Version >= 3 && !(b.softwareName.MatchString(r.ClientSoftwareName) && b.softwareName.MatchString(r.ClientSoftwareVersion)):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case r.Version >= 5 && (r.ClusterID == nil) != (r.NodeID == -1):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case r.Version >= 5 && r.ClusterID != nil && (*r.ClusterID != b.clusterID || r.NodeID != b.nodeID):
		resp.ErrorCode = rebootstrapRequired
	}
	for _, a := range b.apis {
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = a.key, a.min, a.max
		resp.ApiKeys = append(resp.ApiKeys, key)
	}
	return resp
}

// Transaction versions, of KIP-890: 1 has flexible records of __transaction_state, 2 an epoch for each transaction.
const (
	txnFeature = "transaction.version"
	txnVersion = 2
)

// readsZero is the first version of ApiVersions whose clients can read a feature that begins at 0.
const readsZero = 4

// features lists what is finalized. It never changes, so the epoch stays 0.
func (b *Broker) features(resp *kmsg.ApiVersionsResponse, version int16) {
	resp.FinalizedFeaturesEpoch = -1
	if version < 3 {
		return
	}
	resp.FinalizedFeaturesEpoch = 0
	if version >= readsZero {
		s := kmsg.NewApiVersionsResponseSupportedFeature()
		s.Name, s.MaxVersion = txnFeature, txnVersion
		resp.SupportedFeatures = append(resp.SupportedFeatures, s)
	}
	f := kmsg.NewApiVersionsResponseFinalizedFeature()
	f.Name, f.MinVersionLevel, f.MaxVersionLevel = txnFeature, txnVersion, txnVersion
	resp.FinalizedFeatures = append(resp.FinalizedFeatures, f)
}

// rebootstrapRequired is REBOOTSTRAP_REQUIRED (KIP-1102).
const rebootstrapRequired = 129

// softwareNamePattern is what Kafka accepts as client software name and version (KIP-511).
func softwareNamePattern() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)
}
