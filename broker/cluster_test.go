package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

func TestDescribeClusterAtEveryVersion(t *testing.T) {
	b := startBroker(t, t.TempDir(), "broker.rack", "r1")
	c := b.dial()
	for v := int16(0); v <= 2; v++ {
		for _, ops := range []bool{false, true} {
			r := kmsg.NewPtrDescribeClusterRequest()
			r.IncludeClusterAuthorizedOperations = ops
			resp := ask[*kmsg.DescribeClusterResponse](c, v, r)
			want := int32(notAsked)
			if ops {
				want = 8096 // what Kafka answers without an authorizer
			}
			if resp.ErrorCode != 0 || resp.ClusterID != b.ClusterID() || resp.ControllerID != b.nodeID || resp.ClusterAuthorizedOperations != want {
				t.Errorf("v%d: %+v", v, resp)
			}
			if len(resp.Brokers) != 1 {
				t.Fatalf("v%d: brokers %+v", v, resp.Brokers)
			}
			host, port := b.address(&wire.ConnInfo{Local: c.conn.RemoteAddr()})
			if got := resp.Brokers[0]; got.NodeID != b.nodeID || got.Host != host || got.Port != port || text(got.Rack) != "r1" || got.IsFenced {
				t.Errorf("v%d: broker %+v", v, got)
			}
		}
	}
}

func TestDescribeClusterEndpointTypes(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	for kind, want := range map[int8]struct {
		code int16
		text string
	}{
		1: {0, "<null>"},
		2: {114, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"},
		3: {115, "Unsupported endpoint type 3"},
	} {
		for v := int16(1); v <= 2; v++ {
			r := kmsg.NewPtrDescribeClusterRequest()
			r.EndpointType = kind
			resp := ask[*kmsg.DescribeClusterResponse](c, v, r)
			if resp.ErrorCode != want.code || text(resp.ErrorMessage) != want.text || (len(resp.Brokers) == 1) != (want.code == 0) {
				t.Errorf("v%d type %d: %d %q", v, kind, resp.ErrorCode, text(resp.ErrorMessage))
			}
		}
	}
}
