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
//   - Features are in features.go.

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

// rebootstrapRequired is REBOOTSTRAP_REQUIRED (KIP-1102).
const rebootstrapRequired = 129

// softwareNamePattern is what Kafka accepts as client software name and version (KIP-511).
func softwareNamePattern() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)
}
