package config

import (
	_ "embed"
	"strconv"
	"strings"
)

// What happens instead of what a key of Kafka asks for.
const (
	noZooKeeper   = "the client of ZooKeeper here has no such setting"
	noQuorum      = "no controller quorum is used: topics and settings are kept in the data directory"
	noTLS         = "TLS is not built yet: listeners are PLAINTEXT"
	noSASL        = "authentication is not built yet: every client is let in"
	noACL         = "access control is not built yet: everyone may do everything"
	noQuotas      = "quotas are those that tools set for users, clients and addresses, measured over quota.window.num samples"
	noShare       = "share groups are not built yet"
	noStreams     = "streams groups are not built yet"
	noThreads     = "there are no thread pools or purgatories to size"
	noSockets     = "the operating system sizes backlogs"
	noMetrics     = "metrics are read from gregor.metrics.listener"
	noThrottle    = "moves between log directories are not throttled, and one is made at a time"
	noCordon      = "new partitions may go to each of log.dirs"
	oldAddress    = "set listeners and advertised.listeners instead"
	perTopic      = "set the topic's own key instead"
	noPlugins     = "Java plugins cannot be loaded"
	noListenerKey = "a listener has only max.connections and max.connection.creation.rate of its own"
	noUse         = "it has no use here"
)

// reasonOf is what a section of accepted.txt stands for.
func reasonOf(section string) string {
	return map[string]string{
		"noReplicas": noReplicas, "noZooKeeper": noZooKeeper, "noQuorum": noQuorum, "noTLS": noTLS, "noSASL": noSASL, "noACL": noACL,
		"noQuotas": noQuotas, "noShare": noShare, "noStreams": noStreams, "noGroups": noGroups, "noTxns": noTxns, "notTiered": notTiered,
		"noThreads": noThreads, "noSockets": noSockets, "noMetrics": noMetrics, "noThrottle": noThrottle, "noCordon": noCordon, "oldAddress": oldAddress,
		"perTopic": perTopic, "noPlugins": noPlugins, "noUse": noUse,
	}[section]
}

//go:embed accepted.txt
var acceptedText string

// acceptedKeys are the keys of accepted.txt: Kafka's broker keys, from 0.8 to 4.4, that are taken, kept and shown, and have no effect. A line has the
// name, the type, the default and attributes, separated by spaces.
func acceptedKeys() []key {
	var keys []key
	section := ""
	for line := range strings.Lines(acceptedText) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case len(fields) >= 3:
			keys = append(keys, acceptedKey(fields, reasonOf(section)))
		}
	}
	return keys
}

func acceptedKey(fields []string, reason string) key {
	k := key{name: fields[0], typ: typeNamed(fields[1]), idle: reason, doc: "Accepted and without effect: " + reason + "."}
	switch fields[2] {
	case "-":
		k.null = true
	case `""`:
	default:
		k.def = fields[2]
	}
	for _, attribute := range fields[3:] {
		switch attribute {
		case "dynamic":
			k.dynamic = true
		case "hidden":
			k.hidden = true
		default:
			k.rule = boundsOf(attribute)
		}
	}
	if text, ok := refusedKeys()[k.name]; ok {
		k.refused, k.idle, k.doc = text, "", "Refused: "+text+"."
	}
	return k
}

// boundsOf reads LEAST.. or LEAST..MOST.
func boundsOf(text string) rule {
	low, high, _ := strings.Cut(text, "..")
	least, err := strconv.ParseInt(low, 10, 64)
	if err != nil {
		return nil
	}
	most, err := strconv.ParseInt(high, 10, 64)
	if err != nil {
		return atLeast(least)
	}
	return between{least, most}
}

func typeNamed(name string) Type {
	for t := Boolean; t <= Password; t++ {
		if t.String() == name {
			return t
		}
	}
	return Untyped
}

// refusedKeys are those with which the broker does not start: without what they ask for, records would be deleted that they keep, or be less safe.
func refusedKeys() map[string]string {
	const own = "is a key of Kafka before 0.8.1 that is not supported, and without it "
	return map[string]string{
		"log.retention.hours.per.topic":    own + "topics that it keeps longer would lose records; set retention.ms of these topics and take it out",
		"log.retention.bytes.per.topic":    own + "topics that it keeps larger would lose records; set retention.bytes of these topics and take it out",
		"log.flush.intervals.ms.per.topic": own + "topics that it syncs more often could lose records; set flush.ms of these topics and take it out",
	}
}

// acceptedPrefix is for keys whose names Kafka composes.
func acceptedPrefix(name string) (text string, ok bool) {
	switch {
	case strings.HasPrefix(name, "listener.name."):
		_, _, ok := isListenerLimit(name)
		return noListenerKey, !ok
	case strings.HasPrefix(name, "rsm.config."), strings.HasPrefix(name, "rlmm.config."):
		return notTiered, true
	case strings.HasPrefix(name, "config.providers."):
		return noPlugins, true
	}
	return "", false
}
