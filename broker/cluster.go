package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// DescribeCluster (key 60), versions 0 to 2. v1 asks for brokers or for KRaft's controllers, which have no endpoints of their own here.

// Endpoint types of DescribeCluster (KIP-919).
const (
	endpointBroker     = 1
	endpointController = 2
)

func (b *Broker) handleDescribeCluster(_ context.Context, req *wire.Request, r *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ControllerID = -1
	resp.ClusterAuthorizedOperations = notAsked
	resp.Brokers = []kmsg.DescribeClusterResponseBroker{}
	if err := checkEndpointType(r); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
		return resp
	}
	for _, s := range b.brokersFor(req.Conn) {
		broker := kmsg.NewDescribeClusterResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = s.id, s.host, s.port, s.rack
		resp.Brokers = append(resp.Brokers, broker)
	}
	resp.ClusterID, resp.ControllerID = b.clusterID, b.view.Load().controller
	if r.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = allClusterOperations
	}
	return resp
}

func checkEndpointType(r *kmsg.DescribeClusterRequest) error {
	switch {
	case r.Version < 1 || r.EndpointType == endpointBroker:
		return nil
	case r.EndpointType == endpointController:
		return refuse(kerr.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	}
	return refuse(kerr.UnsupportedEndpointType, "Unsupported endpoint type %d", r.EndpointType)
}
