package broker

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClusterAsKafka compares answers about what this broker has not (ACLs, delegation tokens, other brokers) and about features with those of
// Apache Kafka (testdata/cluster, written by TestRecordCluster against brokers without an authorizer).
func TestClusterAsKafka(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "cluster", "*.txt"))
	if err != nil || len(files) != 3 {
		t.Fatalf("recorded answers %q: %v", files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			if n := sameAnswers(t, name, nil, playCluster, clusterDeviates); n < 25 {
				t.Fatalf("only %d answers", n)
			}
		})
	}
}

// TestRecordCluster writes the answers of another broker down.
func TestRecordCluster(t *testing.T) { writeDown(t, "cluster", playCluster) }

// clusterDeviates reports if an answer is known to differ from that version of Kafka.
func clusterDeviates(file, step string) bool {
	if !strings.HasPrefix(step, "UpdateFeatures") {
		return false
	}
	name := step[strings.Index(step, ": ")+2:]
	switch {
	case !strings.Contains(file, "4.4"): // with ZooKeeper there are no features, and results one by one
		return name != "none"
	case strings.Contains(step, "v0") && (strings.HasPrefix(name, "down") || name == "twice" || name == "up by downgrade"):
		// Kafka 4.4 does not look at AllowDowngrade, which is what v0 has.
		return name != "down by upgrade"
	case name == "unknown kind": // of v0, which has none
		return strings.Contains(step, "v0")
	}
	return name == "to 0" || name == "too high" || name == "unknown" // the level 0, and words
}

// clusterPlay is one run of all requests against one broker.
type clusterPlay struct {
	*play
	texts bool // are the same, too
}

func playCluster(t *testing.T, addr string, ranges map[int16][2]int16) []played {
	p := &clusterPlay{newPlay(t, addr, ranges), ranges[1][0] >= 4} // Fetch of Apache Kafka 4
	p.play.renamed = func(v any) any { return renamedCluster(v, p.texts) }
	for v := int16(0); v <= 3; v++ {
		p.acls(v)
		p.tokens(v)
	}
	for v := int16(0); v <= 2; v++ {
		p.features(v)
	}
	r := kmsg.NewPtrUnregisterBrokerRequest()
	r.BrokerID = 99
	p.step("of nobody", 0, r)
	return p.out
}

// renamedCluster takes out what differs between any two brokers, and texts unless they are to be the same.
func renamedCluster(v any, texts bool) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = renamedCluster(x[i], texts)
		}
	case map[string]any:
		for key, e := range x {
			switch {
			case key == "ThrottleMillis", key == "UnknownTags", key == "Version", key == "ErrorMessage" && !texts:
				delete(x, key)
			case e == "NONE": // a text of no error
				x[key] = nil
			default:
				x[key] = renamedCluster(e, texts)
			}
		}
	}
	return v
}

func (p *clusterPlay) acls(v int16) {
	d := kmsg.NewPtrDescribeACLsRequest()
	d.ResourceType, d.ResourcePatternType, d.Operation, d.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	p.step("any", v, d)
	c := kmsg.NewPtrCreateACLsRequest()
	p.step("none", v, c)
	one := kmsg.NewCreateACLsRequestCreation()
	one.ResourceType, one.ResourceName, one.ResourcePatternType = kmsg.ACLResourceTypeTopic, "t", kmsg.ACLResourcePatternTypeLiteral
	one.Principal, one.Host, one.Operation, one.PermissionType = "User:u", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	other := one
	other.Principal = "nobody"
	c.Creations = []kmsg.CreateACLsRequestCreation{one, other}
	p.step("two", v, c)
	x := kmsg.NewPtrDeleteACLsRequest()
	p.step("none", v, x)
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	x.Filters = []kmsg.DeleteACLsRequestFilter{f, f}
	p.step("two", v, x)
}

func (p *clusterPlay) tokens(v int16) {
	c := kmsg.NewPtrCreateDelegationTokenRequest()
	c.MaxLifetimeMillis = -1
	p.step("of the client", v, c)
	kind, name := "User", "u"
	c.OwnerPrincipalType, c.OwnerPrincipalName = &kind, &name
	p.step("of another", v, c)
	r := kmsg.NewPtrRenewDelegationTokenRequest()
	r.HMAC, r.RenewTimeMillis = []byte("none"), 1000
	p.step("unknown", v, r)
	e := kmsg.NewPtrExpireDelegationTokenRequest()
	e.HMAC = []byte("none")
	p.step("unknown", v, e)
	d := kmsg.NewPtrDescribeDelegationTokenRequest()
	p.step("no owners", v, d)
	d.Owners = []kmsg.DescribeDelegationTokenRequestOwner{{PrincipalType: "User", PrincipalName: "u"}}
	p.step("one owner", v, d)
}

// toLevel is one change of transaction.version.
func toLevel(level int16, downgrade bool, kind int8) kmsg.UpdateFeaturesRequestFeatureUpdate {
	u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	u.Feature, u.MaxVersionLevel, u.AllowDowngrade, u.UpgradeType = txnFeature, level, downgrade, kind
	return u
}

// level is that of transaction.version which clients are told.
func (p *clusterPlay) level() int16 {
	r := kmsg.NewPtrApiVersionsRequest()
	r.ClientSoftwareName, r.ClientSoftwareVersion = "test", "1"
	for _, f := range ask[*kmsg.ApiVersionsResponse](p.c, 4, r).FinalizedFeatures {
		if f.Name == txnFeature {
			return f.MaxVersionLevel
		}
	}
	return 0
}

func (p *clusterPlay) features(v int16) {
	send := func(what string, validate bool, updates ...kmsg.UpdateFeaturesRequestFeatureUpdate) {
		r := kmsg.NewPtrUpdateFeaturesRequest()
		r.FeatureUpdates, r.ValidateOnly, r.TimeoutMillis = updates, validate, 10_000
		if done := p.step(what, v, r).(*kmsg.UpdateFeaturesResponse); done.ErrorCode == 0 && !validate && len(updates) > 0 && p.texts {
			waitFor(p.t, func() bool { return p.level() == updates[len(updates)-1].MaxVersionLevel }) // Kafka needs a moment
		}
	}
	if !p.knows(57, v) {
		return
	}
	const upgrade, safe, unsafe = 1, 2, 3
	send("none", false)
	unknown := toLevel(1, false, upgrade)
	unknown.Feature = "none"
	send("unknown", false, unknown)
	unknown.MaxVersionLevel, unknown.AllowDowngrade, unknown.UpgradeType = 0, true, safe
	send("unknown to 0", false, unknown)
	unknown.Feature = ""
	send("empty name", false, unknown)
	send("as it is", false, toLevel(2, false, upgrade))
	send("as it is by downgrade", false, toLevel(2, true, safe))
	send("too high", false, toLevel(3, false, upgrade))
	send("negative", false, toLevel(-1, true, safe))
	send("down by upgrade", false, toLevel(1, false, upgrade))
	send("twice", false, toLevel(2, false, upgrade), toLevel(1, true, safe))
	send("unknown kind", false, toLevel(1, false, 9))
	send("down, checked only", true, toLevel(1, true, safe))
	send("reset", false, toLevel(2, false, upgrade))
	send("down", false, toLevel(1, true, safe))
	send("up by downgrade", false, toLevel(2, true, unsafe))
	send("up and unknown", false, toLevel(2, false, upgrade), unknown)
	send("up", false, toLevel(2, false, upgrade))
	send("down unsafe", false, toLevel(1, true, unsafe))
	send("up again", false, toLevel(2, false, upgrade))
	send("to 0", false, toLevel(0, true, safe))
	send("from 0", false, toLevel(2, false, upgrade))
}
