package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// DescribeAcls, CreateAcls and DeleteAcls (keys 29 to 31), versions 0 to 3. There is no access control yet: the answers are those of Apache Kafka without
// an authorizer, so that tools say that and not that the broker is too old.

func (b *Broker) handleDescribeACLs(context.Context, *wire.Request, *kmsg.DescribeACLsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeACLsResponse()
	err := refuse(kerr.SecurityDisabled, "No Authorizer is configured on the broker")
	resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
	return resp
}

func (b *Broker) handleCreateACLs(_ context.Context, _ *wire.Request, r *kmsg.CreateACLsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreateACLsResponse()
	resp.Results = make([]kmsg.CreateACLsResponseResult, len(r.Creations))
	err := refuse(kerr.SecurityDisabled, "No Authorizer is configured.")
	number, text := code(err), errorText(err)
	for i := range resp.Results {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = number, text
	}
	return resp
}

func (b *Broker) handleDeleteACLs(_ context.Context, _ *wire.Request, r *kmsg.DeleteACLsRequest) kmsg.Response {
	resp := kmsg.NewPtrDeleteACLsResponse()
	resp.Results = make([]kmsg.DeleteACLsResponseResult, len(r.Filters))
	err := refuse(kerr.SecurityDisabled, "No Authorizer is configured.")
	number, text := code(err), errorText(err)
	for i := range resp.Results {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = number, text
	}
	return resp
}
