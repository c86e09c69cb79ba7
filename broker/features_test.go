package broker

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// told is the level and the epoch that a client of ApiVersions v3 or newer hears.
func told(c *client, version int16) (level int16, epoch int64) {
	c.t.Helper()
	r := kmsg.NewPtrApiVersionsRequest()
	r.ClientSoftwareName, r.ClientSoftwareVersion = "test", "1"
	resp := ask[*kmsg.ApiVersionsResponse](c, version, r)
	if len(resp.SupportedFeatures) != 1 || resp.SupportedFeatures[0].MinVersion != txnLowest || resp.SupportedFeatures[0].MaxVersion != txnHighest {
		c.t.Errorf("ApiVersions v%d: supported %+v", version, resp.SupportedFeatures)
	}
	if len(resp.FinalizedFeatures) != 1 || resp.FinalizedFeatures[0].Name != txnFeature {
		c.t.Fatalf("ApiVersions v%d: finalized %+v", version, resp.FinalizedFeatures)
	}
	return resp.FinalizedFeatures[0].MaxVersionLevel, resp.FinalizedFeaturesEpoch
}

// TestFeatureLevels: a level is told at once, the epoch goes up with each change, and both are there after a restart.
func TestFeatureLevels(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	change := func(level int16, kind int8, validate bool) int16 {
		r := kmsg.NewPtrUpdateFeaturesRequest()
		r.FeatureUpdates, r.ValidateOnly = []kmsg.UpdateFeaturesRequestFeatureUpdate{toLevel(level, false, kind)}, validate
		return ask[*kmsg.UpdateFeaturesResponse](c, 2, r).ErrorCode
	}
	for _, step := range []struct {
		level    int16
		kind     int8
		validate bool
		code     int16
		told     int16
		epoch    int64
	}{
		{2, featureUpgrade, false, 0, 2, 0},
		{1, featureSafeDowngrade, true, 0, 2, 0},
		{0, featureUnsafeDowngrade, false, kerr.InvalidUpdateVersion.Code, 2, 0},
		{1, featureSafeDowngrade, false, 0, 1, 1},
		{2, featureUpgrade, false, 0, 2, 2},
		{1, featureUnsafeDowngrade, false, 0, 1, 3},
	} {
		if got := change(step.level, step.kind, step.validate); got != step.code {
			t.Errorf("%+v: error %d", step, got)
		}
		for _, version := range []int16{3, 4, 5} {
			if level, epoch := told(c, version); level != step.told || epoch != step.epoch {
				t.Errorf("%+v: v%d is told level %d of epoch %d", step, version, level, epoch)
			}
		}
	}
	b.stopClean()
	b = startBroker(t, dir)
	c = b.dial()
	if level, epoch := told(c, 4); level != 1 || epoch != 3 {
		t.Errorf("after a restart: level %d of epoch %d", level, epoch)
	}
	change(2, featureUpgrade, false)
	if level, epoch := told(c, 4); level != 2 || epoch != 4 {
		t.Errorf("up again: level %d of epoch %d", level, epoch)
	}
}

// TestFeatureFromTheFuture: a level that this version does not know is not taken for another.
func TestFeatureFromTheFuture(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	level := "9"
	if _, err := b.control.AlterEntity(t.Context(), featureTree, map[string]*string{txnFeature: &level}); err != nil {
		t.Fatal(err)
	}
	b.stopClean()
	again := newBroker(t, Config{}, dir)
	if err := again.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `transaction.version is finalized at "9"`) {
		t.Errorf("started: %v", err)
	}
	again.stopClean()
}

// TestUnregisterBroker: one that runs cannot be taken back.
func TestUnregisterBroker(t *testing.T) {
	b := startBroker(t, t.TempDir(), "broker.id", "7")
	for id, want := range map[int32]*kerr.Error{7: kerr.InvalidRequest, 8: kerr.BrokerIDNotRegistered, -1: kerr.BrokerIDNotRegistered} {
		r := kmsg.NewPtrUnregisterBrokerRequest()
		r.BrokerID = id
		if resp := ask[*kmsg.UnregisterBrokerResponse](b.dial(), 0, r); resp.ErrorCode != want.Code || resp.ErrorMessage == nil {
			t.Errorf("broker %d: %+v, want %v", id, resp, want)
		}
	}
}
