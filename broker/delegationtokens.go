package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken (keys 38 to 41), versions 0 to 3, 2, 2 and 3. A token is
// for somebody who has said who he is, and as on any PLAINTEXT listener of Apache Kafka nobody can: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

const principalUser = "User"

func (b *Broker) handleCreateToken(_ context.Context, _ *wire.Request, r *kmsg.CreateDelegationTokenRequest) kmsg.Response {
	resp := kmsg.NewPtrCreateDelegationTokenResponse()
	resp.ErrorCode = kerr.DelegationTokenRequestNotAllowed.Code
	resp.TokenRequesterPrincipalType, resp.TokenRequesterPrincipalName = principalUser, anonymous
	resp.PrincipalType, resp.PrincipalName = principalUser, anonymous
	if r.Version >= 3 && r.OwnerPrincipalName != nil && *r.OwnerPrincipalName != "" && r.OwnerPrincipalType != nil {
		resp.PrincipalType, resp.PrincipalName = *r.OwnerPrincipalType, *r.OwnerPrincipalName
	}
	resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = -1, -1, -1
	return resp
}

func (b *Broker) handleRenewToken(context.Context, *wire.Request, *kmsg.RenewDelegationTokenRequest) kmsg.Response {
	resp := kmsg.NewPtrRenewDelegationTokenResponse()
	resp.ErrorCode, resp.ExpiryTimestamp = kerr.DelegationTokenRequestNotAllowed.Code, -1
	return resp
}

func (b *Broker) handleExpireToken(context.Context, *wire.Request, *kmsg.ExpireDelegationTokenRequest) kmsg.Response {
	resp := kmsg.NewPtrExpireDelegationTokenResponse()
	resp.ErrorCode, resp.ExpiryTimestamp = kerr.DelegationTokenRequestNotAllowed.Code, -1
	return resp
}

func (b *Broker) handleDescribeTokens(context.Context, *wire.Request, *kmsg.DescribeDelegationTokenRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeDelegationTokenResponse()
	resp.ErrorCode = kerr.DelegationTokenRequestNotAllowed.Code
	return resp
}
