package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// groupOwnKeys are those of one group. They are for the newer protocols.
func groupOwnKeys() []key {
	keys := groupProtocolKeys()
	for i := range keys {
		switch kind, _, _ := strings.Cut(keys[i].name, "."); kind {
		case "consumer":
			keys[i].idle = noGroups
		case "streams":
			keys[i].idle = noStreams
		default:
			keys[i].idle = noShare
		}
	}
	return keys
}

func groupProtocolKeys() []key {
	const idle = " Kept for tools: it has no effect, because these groups are not built yet."
	from := func(name string, r rule, doc string) key {
		k := brokerCatalog().byName["group."+name]
		return key{name: name, typ: k.typ, rule: r, from: same("group." + name), doc: doc + idle}
	}
	return []key{
		from("consumer.session.timeout.ms", atLeast(1), "Milliseconds without a heartbeat after which a member of a consumer group is taken for dead."),
		from("consumer.heartbeat.interval.ms", atLeast(1), "Milliseconds between the heartbeats of a consumer group's members."),
		from("consumer.assignment.interval.ms", atLeast(0), "Milliseconds between assignments of a consumer group."),
		from("share.session.timeout.ms", atLeast(1), "Milliseconds without a heartbeat after which a member of a share group is taken for dead."),
		from("share.heartbeat.interval.ms", atLeast(1), "Milliseconds between the heartbeats of a share group's members."),
		from("share.assignment.interval.ms", atLeast(0), "Milliseconds between assignments of a share group."),
		from("share.record.lock.duration.ms", atLeast(1000), "Milliseconds that a member of a share group holds a record."),
		from("share.delivery.count.limit", atLeast(2), "Deliveries of a record in a share group."),
		from("share.partition.max.record.locks", atLeast(100), "Records of a partition that may be held in a share group."),
		{name: "share.auto.offset.reset", typ: String, def: "latest", rule: offsetReset{}, doc: "Where a share group begins: earliest, latest or by_duration:DURATION." + idle},
		{name: "share.isolation.level", typ: String, def: "read_uncommitted", rule: oneOf{"read_committed", "read_uncommitted"}, doc: "Whether a share group sees records of open transactions." + idle},
		{name: "share.renew.acknowledge.enable", typ: Boolean, def: "true", doc: "Whether members of a share group may hold a record longer." + idle},
		{name: "errors.deadletterqueue.topic.name", typ: String, def: "", doc: "Topic for records that a share group gives up." + idle},
		{name: "errors.deadletterqueue.copy.record.enable", typ: Boolean, def: "false", doc: "Whether such records are copied whole." + idle},
		from("streams.session.timeout.ms", atLeast(1), "Milliseconds without a heartbeat after which a member of a streams group is taken for dead."),
		from("streams.heartbeat.interval.ms", atLeast(1), "Milliseconds between the heartbeats of a streams group's members."),
		from("streams.assignment.interval.ms", atLeast(0), "Milliseconds between assignments of a streams group."),
		from("streams.num.standby.replicas", atLeast(0), "Standby tasks of a streams group."),
		from("streams.initial.rebalance.delay.ms", atLeast(0), "Milliseconds that an empty streams group waits for more members."),
		from("streams.rack.aware.assignment.tags", nil, "Tags of clients that standby tasks are spread over."),
		{name: "streams.assignor.name", typ: String, from: same("group.streams.assignors"), doc: "Assignor of a streams group." + idle},
	}
}

// offsetReset is the rule for share.auto.offset.reset.
type offsetReset struct{}

// isoDuration matches what Java's Duration.parse takes, but for signs.
var isoDuration = regexp.MustCompile(`(?i)^P(\d+D)?(T(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?$`)

func (offsetReset) problem(v any) (string, string) {
	text := format(v)
	duration, isDuration := strings.CutPrefix(text, "by_duration:")
	ok := text == "earliest" || text == "latest"
	if isDuration {
		last := duration[max(0, len(duration)-1):]
		ok = isoDuration.MatchString(duration) && !strings.EqualFold(last, "P") && !strings.EqualFold(last, "T")
	}
	if !ok {
		return "", "Invalid value `" + text + "` for configuration share.auto.offset.reset. " +
			"The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
	}
	return "", ""
}

func (offsetReset) allowed() string { return "earliest, latest, by_duration:DURATION" }

// ValidateGroup checks the keys of a group by themselves and with the broker's limits. The error is a *ResourceError.
func (s *Server) ValidateGroup(own map[string]string) error {
	c := groupCatalog()
	names := slices.Sorted(maps.Keys(own))
	for _, name := range names {
		if c.byName[name] == nil {
			return &ResourceError{Key: name, text: "Unknown group config name: " + name}
		}
	}
	for _, name := range names {
		if _, err := resourceValue(c, own, name); err != nil {
			return err
		}
	}
	if err := s.groupNames(own); err != nil {
		return err
	}
	for _, name := range groupLimited() {
		if text, ok := own[name]; ok {
			if err := s.groupLimit(name, text); err != nil {
				return err
			}
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		heartbeat, session := kind+".heartbeat.interval.ms", kind+".session.timeout.ms"
		h, _ := s.topicValue(c.byName[heartbeat], own).(int64)
		t, _ := s.topicValue(c.byName[session], own).(int64)
		if h >= t {
			return &ResourceError{Key: session, text: session + " must be greater than " + heartbeat}
		}
	}
	return nil
}

// groupNames checks the keys that name things.
func (s *Server) groupNames(own map[string]string) error {
	const assignor, tags, letters = "streams.assignor.name", "streams.rack.aware.assignment.tags", "errors.deadletterqueue.topic.name"
	known := s.list("group.streams.assignors")
	if name, ok := own[assignor]; ok && !slices.Contains(known, strings.TrimSpace(name)) {
		return &ResourceError{Key: assignor, text: fmt.Sprintf("%s '%s' is not a registered task assignor. Registered assignors are: [%s].",
			assignor, strings.TrimSpace(name), strings.Join(known, ", "))}
	}
	if list := splitList(strings.TrimSpace(own[tags])); len(distinct(list)) < len(list) {
		return &ResourceError{Key: tags, text: tags + " must not contain duplicate tag keys."}
	}
	if strings.HasPrefix(strings.TrimSpace(own[letters]), "__") {
		return &ResourceError{Key: letters, text: letters + ": DLQ topic name must not start with '__'"}
	}
	return nil
}

// groupLimited are the keys with limits that the broker sets, in the order in which Kafka checks them.
func groupLimited() []string {
	return []string{
		"consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms",
		"share.session.timeout.ms", "share.heartbeat.interval.ms", "share.assignment.interval.ms", "share.record.lock.duration.ms",
		"share.delivery.count.limit", "share.partition.max.record.locks",
		"streams.session.timeout.ms", "streams.heartbeat.interval.ms", "streams.assignment.interval.ms", "streams.num.standby.replicas",
	}
}

// groupLimit checks a key of a group against the broker's group.KIND.min.X and group.KIND.max.X.
func (s *Server) groupLimit(name, text string) error {
	v, _, _ := groupCatalog().byName[name].parse(text)
	n, _ := v.(int64)
	kind, rest, _ := strings.Cut(name, ".")
	if rest == "num.standby.replicas" {
		if most := s.integer("group.streams.max.standby.replicas"); n > most {
			return &ResourceError{Key: name, text: fmt.Sprintf("%s must be less than or equal to %d", name, most)}
		}
		return nil
	}
	prefix := "group." + kind
	return s.inRange(name, n, prefix+".min."+rest, prefix+".max."+rest)
}

func (s *Server) inRange(name string, n int64, least, most string) error {
	if low, high := s.integer(least), s.integer(most); n < low || n > high {
		return &ResourceError{Key: name, text: fmt.Sprintf("%s must be in the range %d to %d inclusive.", name, low, high)}
	}
	return nil
}

// DescribeGroup returns the entries of a group with the given keys of its own, sorted by name: those named, or all for nil names.
func (s *Server) DescribeGroup(own map[string]string, names []string) []Entry {
	entries := s.describeOwn(groupCatalog(), SourceGroup, own, names)
	for i := range entries {
		// Kafka lists a group's own default, which it does not for topics.
		if k := groupCatalog().byName[entries[i].Name]; len(k.from) == 0 {
			entries[i].Synonyms = append(entries[i].Synonyms, Synonym{Name: k.name, Value: &k.def, Source: SourceDefault})
		}
	}
	return entries
}
