package broker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// UpdateFeatures (key 57), versions 0 to 2 (KIP-584, KIP-1022), and the features that ApiVersions tells clients of. A feature is listed when a level of it
// changes what this broker does:
//
//   - transaction.version (KIP-890). 2: clients let partitions join a transaction by writing to them, and get an epoch for each transaction. 1: they do as
//     before. 0 would mean records of __transaction_state that are not flexible; those are not written here.
//   - Not metadata.version and kraft.version, there is no KRaft; not group.version, share.version, streams.version, those protocols are not built; not
//     eligible.leader.replicas.version.
//
// Clients take a new level up when they connect the next time. What the others send goes on working.

// Levels of transaction.version.
const (
	txnFeature  = "transaction.version"
	txnLowest   = 1
	txnHighest  = 2
	featureTree = "/gregor/features" // not Kafka's /feature: an Apache Kafka 3 that reads these levels there ends
	epochKey    = "epoch"
)

// finalized is what clients are told. It is replaced as a whole.
type finalized struct {
	txn   int16 // level of transaction.version
	epoch int64 // changes so far
}

// Kinds of changes in UpdateFeatures v1+.
const (
	featureUpgrade         = 1
	featureSafeDowngrade   = 2
	featureUnsafeDowngrade = 3
)

// loadFeatures reads what was finalized before.
func (b *Broker) loadFeatures(ctx context.Context) error {
	now := &finalized{txn: txnHighest}
	own, err := b.control.EntityConfig(ctx, featureTree)
	if err != nil {
		return fmt.Errorf("reading the finalized features: %w", err)
	}
	if text, ok := own[txnFeature]; ok {
		level, err := strconv.ParseInt(text, 10, 16)
		if err != nil || level < txnLowest || level > txnHighest {
			return fmt.Errorf("feature %s is finalized at %q, this version knows %d to %d; run the version that set it and set another level", txnFeature, text, txnLowest, txnHighest)
		}
		now.txn = int16(level)
		now.epoch, _ = strconv.ParseInt(own[epochKey], 10, 64) // 0 where it is missing
	}
	b.finalized.Store(now)
	return nil
}

func (b *Broker) handleUpdateFeatures(ctx context.Context, _ *wire.Request, r *kmsg.UpdateFeaturesRequest) kmsg.Response {
	resp := kmsg.NewPtrUpdateFeaturesResponse()
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.checkSeat(); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
		return resp
	}
	next := *b.finalized.Load()
	for i := range r.FeatureUpdates {
		u := &r.FeatureUpdates[i]
		if err := b.checkFeature(u, r.Version); err != nil {
			err = refuse(kerr.InvalidUpdateVersion, "The update failed for all features since the following feature had an error: Invalid update version %d for feature %s. %s",
				u.MaxVersionLevel, u.Feature, err)
			resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
			return resp
		}
		next.txn = u.MaxVersionLevel
	}
	if next != *b.finalized.Load() && !r.ValidateOnly {
		next.epoch++
		if err := b.finalize(ctx, &next); err != nil {
			resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
			return resp
		}
	}
	for i := range r.FeatureUpdates {
		out := kmsg.NewUpdateFeaturesResponseResult()
		out.Feature = r.FeatureUpdates[i].Feature
		resp.Results = append(resp.Results, out)
	}
	return resp
}

// featureError says why a feature cannot have a level.
type featureError string

func (e featureError) Error() string { return string(e) }

// checkFeature checks one change against the present level.
func (b *Broker) checkFeature(u *kmsg.UpdateFeaturesRequestFeatureUpdate, version int16) error {
	kind, now := u.UpgradeType, b.finalized.Load().txn
	if version == 0 {
		kind = featureUpgrade
		if u.AllowDowngrade {
			kind = featureSafeDowngrade
		}
	}
	switch {
	case kind < featureUpgrade || kind > featureUnsafeDowngrade:
		return featureError("The controller does not support the given upgrade type.")
	case u.MaxVersionLevel < 0:
		return featureError("A feature version cannot be less than 0.")
	case u.Feature != txnFeature && u.MaxVersionLevel == 0:
		return featureError(fmt.Sprintf("Feature %s not found.", u.Feature))
	case u.Feature != txnFeature:
		return featureError("This broker does not support this feature.")
	case u.MaxVersionLevel < txnLowest || u.MaxVersionLevel > txnHighest:
		return featureError(fmt.Sprintf("This broker only supports versions %d-%d", txnLowest, txnHighest))
	case u.MaxVersionLevel < now && kind == featureUpgrade:
		return featureError("Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	case u.MaxVersionLevel > now && kind != featureUpgrade:
		return featureError("Can't downgrade to a newer version.")
	}
	return nil
}

// finalize makes levels durable, then known. Broker.admin is held.
func (b *Broker) finalize(ctx context.Context, next *finalized) error {
	level, epoch := strconv.Itoa(int(next.txn)), strconv.FormatInt(next.epoch, 10)
	change := map[string]*string{txnFeature: &level, epochKey: &epoch}
	if _, err := b.control.AlterEntity(ctx, featureTree, change); err != nil {
		return err
	}
	b.finalized.Store(next)
	b.logger.Info("feature has another level", "feature", txnFeature, "level", next.txn)
	return nil
}

// features puts what is supported and finalized into an answer of ApiVersions.
func (b *Broker) features(resp *kmsg.ApiVersionsResponse, version int16) {
	resp.FinalizedFeaturesEpoch = -1
	if version < 3 {
		return
	}
	now := b.finalized.Load()
	resp.FinalizedFeaturesEpoch = now.epoch
	s := kmsg.NewApiVersionsResponseSupportedFeature()
	s.Name, s.MinVersion, s.MaxVersion = txnFeature, txnLowest, txnHighest
	resp.SupportedFeatures = append(resp.SupportedFeatures, s)
	f := kmsg.NewApiVersionsResponseFinalizedFeature()
	f.Name, f.MinVersionLevel, f.MaxVersionLevel = txnFeature, now.txn, now.txn
	resp.FinalizedFeatures = append(resp.FinalizedFeatures, f)
}
