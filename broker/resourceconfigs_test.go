package broker

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// shown describes one resource as text, a line for each key.
func (c *client) shown(kind kmsg.ConfigResourceType, name string, keys ...string) string {
	c.t.Helper()
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.IncludeSynonyms = true
	in := kmsg.NewDescribeConfigsRequestResource()
	in.ResourceType, in.ResourceName, in.ConfigNames = kind, name, keys
	r.Resources = append(r.Resources, in)
	got := ask[*kmsg.DescribeConfigsResponse](c, 4, r).Resources[0]
	if got.ErrorCode != 0 {
		return fmt.Sprintf("%d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	var lines []string
	for _, e := range got.Configs {
		line := fmt.Sprintf("%s=%s %d", e.Name, text(e.Value), e.Source)
		for _, s := range e.ConfigSynonyms {
			line += fmt.Sprintf(" [%s=%s %d]", s.Name, text(s.Value), s.Source)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// listed are the resources that ListConfigResources names.
func (c *client) listed(kinds ...int8) string {
	c.t.Helper()
	r := kmsg.NewPtrListConfigResourcesRequest()
	r.ResourceTypes = kinds
	var names []string
	for _, res := range ask[*kmsg.ListConfigResourcesResponse](c, 1, r).ConfigResources {
		names = append(names, fmt.Sprintf("%d %s", res.Type, res.Name))
	}
	return strings.Join(names, ", ")
}

type resourceStep struct {
	ops  []kmsg.IncrementalAlterConfigsRequestResourceConfig
	want string
}

type operations = []kmsg.IncrementalAlterConfigsRequestResourceConfig

// What Apache Kafka 4.4.0 answers.
func TestClientMetricsConfigs(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	const illegal = "40 Illegal client matching pattern: "
	null := set("metrics", "")
	null.Value = nil
	for i, s := range []resourceStep{
		{operations{set("metrics", "org.apache."), set("interval.ms", "1000"), set("match", "client_id=a.*")}, altered},
		{operations{set("interval.ms", "99")}, "42 Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)"},
		{operations{set("interval.ms", "3600001")}, "42 Invalid value 3600001 for interval.ms, interval must be between 100 and 3600000 (1 hour)"},
		{operations{set("interval.ms", "x")}, "40 Invalid value x for configuration interval.ms: Not a number of type INT"},
		{operations{set("foo", "x")}, "42 Unknown client metrics configuration: foo"},
		{operations{set("match", "foo")}, illegal + "foo"},
		{operations{set("match", "foo=bar")}, illegal + "foo=bar"},
		{operations{set("match", "client_id=[")}, illegal + "client_id=["},
		{operations{set("match", "client_id=a=b")}, illegal + "client_id=a=b"},
		{operations{set("match", "client_id=")}, illegal + "client_id="},
		{operations{set("match", "client_id=a,client_id=b")}, altered},
		{operations{set("match", "client_software_name=a,client_software_version=1.*,client_source_address=x,client_source_port=9,client_instance_id=u")}, altered},
		{operations{set("metrics", "a,b,a"), remove("match"), remove("foo")}, altered},
		{operations{add("metrics", "c")}, "40 Can't APPEND to key metrics because its type is not LIST."},
		{operations{null}, "42 Null value not supported for : metrics"},
	} {
		if got := c.increment(resourceClientMetrics, "m/1", false, s.ops...); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	if got := c.increment(resourceClientMetrics, "", false); got != "42 Subscription name can't be empty" {
		t.Error(got)
	}
	if got := c.increment(resourceClientMetrics, "m2", true, set("interval.ms", "777")); got != altered {
		t.Error(got)
	}
	const want = "interval.ms=1000 7 [interval.ms=1000 7]\nmatch= 5\nmetrics=a,b 7 [metrics=a,b 7]"
	if got := c.shown(resourceClientMetrics, "m/1"); got != want {
		t.Errorf("got %s", got)
	}
	if got := c.listed(16); got != "16 m/1" {
		t.Errorf("listed %s", got)
	}
	b.stopClean()
	again := startBroker(t, dir)
	c = again.dial()
	if got := c.shown(resourceClientMetrics, "m/1"); got != want {
		t.Errorf("after a restart: %s", got)
	}
	_, before := again.clientMetrics.subscriptions()
	if got := c.alter(resourceClientMetrics, "m/1", false); got != altered {
		t.Error(got)
	}
	if all, now := again.clientMetrics.subscriptions(); len(all) != 0 || now == before || c.listed(16) != "" {
		t.Errorf("%v is left, change %d after %d", all, now, before)
	}
	if got := c.shown(resourceClientMetrics, "nothere", "interval.ms"); got != "interval.ms=300000 5" {
		t.Errorf("got %s", got)
	}
}

// What Apache Kafka 4.4.0 answers.
func TestGroupConfigs(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "group.share.min.session.timeout.ms", "5000")
	c := b.dial()
	const consumer, reset = "consumer.session.timeout.ms", "share.auto.offset.reset"
	badReset := func(v string) string {
		return "40 Invalid value " + v + " for configuration share.auto.offset.reset: Invalid value `" + v + "` for configuration share.auto.offset.reset. " +
			"The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
	}
	for i, s := range []resourceStep{
		{operations{set(consumer, "50000")}, altered},
		{operations{set(consumer, "44999")}, "40 consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."},
		{operations{set(consumer, "60001")}, "40 consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."},
		{operations{set(consumer, "-1")}, "40 Invalid value -1 for configuration consumer.session.timeout.ms: Value must be at least 1"},
		{operations{set(consumer, "x")}, "40 Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT"},
		{operations{add(consumer, "1")}, "40 Can't APPEND to key consumer.session.timeout.ms because its type is not LIST."},
		{operations{set("consumer.assignment.interval.ms", "15001")}, "40 consumer.assignment.interval.ms must be in the range 0 to 15000 inclusive."},
		{operations{set("share.session.timeout.ms", "10000"), set("share.heartbeat.interval.ms", "15000")},
			"40 share.session.timeout.ms must be greater than share.heartbeat.interval.ms"},
		{operations{set("share.partition.max.record.locks", "10001")}, "40 share.partition.max.record.locks must be in the range 100 to 4000 inclusive."},
		{operations{set("share.delivery.count.limit", "1")}, "40 Invalid value 1 for configuration share.delivery.count.limit: Value must be at least 2"},
		{operations{set("streams.num.standby.replicas", "3")}, "40 streams.num.standby.replicas must be less than or equal to 2"},
		{operations{set("streams.assignor.name", "foo")}, "40 streams.assignor.name 'foo' is not a registered task assignor. Registered assignors are: [sticky]."},
		{operations{set("streams.rack.aware.assignment.tags", "a,a")}, "40 streams.rack.aware.assignment.tags must not contain duplicate tag keys."},
		{operations{add("streams.rack.aware.assignment.tags", "a")}, "40 Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST."},
		{operations{set("errors.deadletterqueue.topic.name", "__x")}, "40 errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"},
		{operations{set("foo", "1"), set(consumer, "1")}, "40 Unknown group config name: foo"},
		{operations{remove("foo"), set(reset, "by_duration:P1DT2H3M4.5S")}, altered},
		{operations{set(reset, "by_duration:pt1h")}, altered},
		{operations{set(reset, "by_duration:P1W")}, badReset("by_duration:P1W")},
		{operations{set(reset, "by_duration:PT")}, badReset("by_duration:PT")},
		{operations{set(reset, "LATEST")}, badReset("LATEST")},
		{operations{set(reset, "by_duration:-PT1H")}, badReset("by_duration:-PT1H")},
	} {
		if got := c.increment(resourceGroup, "g1", false, s.ops...); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	if got := c.increment(resourceGroup, "", false); got != "42 Default group resources are not allowed." {
		t.Error(got)
	}
	if got := c.shown(resourceGroup, ""); got != "42 Group name must not be empty" {
		t.Error(got)
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	const want = "consumer.session.timeout.ms=50000 8 [consumer.session.timeout.ms=50000 8] [group.consumer.session.timeout.ms=45000 5]\n" +
		"share.auto.offset.reset=by_duration:pt1h 8 [share.auto.offset.reset=by_duration:pt1h 8] [share.auto.offset.reset=latest 5]\n" +
		"streams.assignor.name=sticky 5 [group.streams.assignors=sticky 5]"
	if got := c.shown(resourceGroup, "g1", consumer, reset, "streams.assignor.name", "nope"); got != want {
		t.Errorf("after a restart: %s", got)
	}
	if got := strings.Count(c.shown(resourceGroup, "nothere"), "\n"); got != 20 {
		t.Errorf("%d lines", got)
	}
	if got := c.listed(32, 16, 4); got != "4 0, 32 g1" {
		t.Errorf("listed %s", got)
	}
	if got := c.increment(resourceGroup, "g1", false, remove(consumer), remove(reset)); got != altered || c.listed(32) != "" {
		t.Errorf("%s, listed %s", got, c.listed(32))
	}
}

// What Apache Kafka 4.4.0 answers.
func TestLoggers(t *testing.T) {
	var out syncBuffer
	b := newBroker(t, Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}, t.TempDir())
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	const logger = kmsg.ConfigResourceTypeBrokerLogger
	const levels = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
	null := set("root", "")
	null.Value = nil
	if got, want := c.shown(logger, "0"), "gregor.broker=INFO 6\ngregor.controller=INFO 6\ngregor.log=INFO 6\ngregor.wire=INFO 6\nroot=INFO 6"; got != want {
		t.Errorf("got %s", got)
	}
	for i, s := range []resourceStep{
		{operations{set("root", "ERROR"), set("gregor.wire", "DEBUG")}, altered},
		{operations{set("root", "debug")}, "40 Cannot set the log level of root to debug as it is not a supported log level. " + levels},
		{operations{set("nope", "TRACE")}, "40 Logger nope does not exist!"},
		{operations{remove("nope")}, "40 Logger nope does not exist!"},
		{operations{set("root", "INFO"), set("nope", "WARN")}, "40 Logger nope does not exist!"},
		{operations{add("root", "INFO")}, "42 APPEND operation is not allowed for the BROKER_LOGGER resource"},
		{operations{subtract("root", "INFO")}, "42 SUBTRACT operation is not allowed for the BROKER_LOGGER resource"},
		{operations{null}, "42 Null value not supported for : root"},
		{operations{remove("root")}, "42 Removing the log level of the root logger is not allowed"},
		{operations{set("root", "INFO"), set("root", "WARN")}, "42 Error due to duplicate config keys"},
	} {
		if got := c.increment(logger, "0", false, s.ops...); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	for got, want := range map[string]string{
		c.increment(logger, "", false, set("root", "INFO")):  "42 Node id must be an integer, but it is: ",
		c.increment(logger, "x", false, set("root", "INFO")): "42 Node id must be an integer, but it is: x",
		c.increment(logger, "0", true, set("root", "TRACE")): altered,
		c.alter(logger, "0", false, "root", "INFO"):          "42 Unknown resource type 8",
		c.shown(logger, ""):  "42 Broker id must not be empty",
		c.shown(logger, "x"): "42 Broker id must be an integer, but it is: x",
		c.shown(logger, "0", "root", "gregor.wire", "gregor.no"): "gregor.wire=DEBUG 6\nroot=ERROR 6",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b.levels.Logger(logOfWire).Debug("a detail of wire")
	b.logger.Warn("a warning of the broker")
	if got := out.String(); !strings.Contains(got, "a detail of wire") || strings.Contains(got, "a warning of the broker") {
		t.Errorf("logged %s", got)
	}
	if got := c.increment(logger, "0", false, remove("gregor.wire")); got != altered || c.shown(logger, "0", "gregor.wire") != "gregor.wire=ERROR 6" {
		t.Error(got, c.shown(logger, "0", "gregor.wire"))
	}
}

// TestLoggersAreDocumented: CONFIG.md, which the tables of keys are made into, has the loggers' names too.
func TestLoggersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(newLevels(nil).Names()[:4], ", "); !strings.Contains(string(page), "root, "+names+".") {
		t.Errorf("CONFIG.md does not name %s", names)
	}
}
