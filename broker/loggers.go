package broker

import (
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/config"
	"gregor/broker/loglevel"
)

// Resources of type BROKER_LOGGER: the loggers of this broker, whose levels IncrementalAlterConfigs sets (KIP-412). Kafka's are named after its classes,
// ours after the parts below. They are not kept over a restart, as in Kafka, and AlterConfigs does not know them.

// Names of the loggers.
const (
	logOfBroker     = "gregor.broker"     // all that is not below
	logOfWire       = "gregor.wire"       // connections and frames
	logOfStore      = "gregor.log"        // log directories, logs, recovery
	logOfController = "gregor.controller" // the metadata tree
)

func newLevels(given *slog.Logger) *loglevel.Levels {
	if given == nil {
		given = slog.New(slog.DiscardHandler)
	}
	return loglevel.New(given.Handler(), logOfBroker, logOfWire, logOfStore, logOfController)
}

// describeLoggers are the levels in force.
func (b *Broker) describeLoggers(names []string) []config.Entry {
	var entries []config.Entry
	for _, name := range b.levels.Names() {
		if names == nil || slices.Contains(names, name) {
			level := loglevel.LevelName(b.levels.Level(name))
			entries = append(entries, config.Entry{Name: name, Value: &level, Source: config.SourceLogger})
		}
	}
	return entries
}

// alterLoggers sets levels: all or, when anything is wrong, none.
func (b *Broker) alterLoggers(ops []kmsg.IncrementalAlterConfigsRequestResourceConfig, validateOnly bool) error {
	if len(repeated(ops, func(c *kmsg.IncrementalAlterConfigsRequestResourceConfig) string { return c.Name })) > 0 {
		return duplicateKey()
	}
	for i := range ops {
		if err := b.checkLogger(&ops[i]); err != nil {
			return err
		}
	}
	if validateOnly {
		return nil
	}
	for _, op := range ops {
		if op.Op == kmsg.IncrementalAlterConfigOpDelete {
			b.levels.Unset(op.Name)
			continue
		}
		level, _ := loglevel.ParseLevel(*op.Value)
		b.levels.Set(op.Name, level)
	}
	return nil
}

func (b *Broker) checkLogger(op *kmsg.IncrementalAlterConfigsRequestResourceConfig) error {
	const known = "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
	switch op.Op {
	case kmsg.IncrementalAlterConfigOpSet:
		if err := checkValue(op.Name, op.Value); err != nil {
			return err
		}
		if !b.levels.Has(op.Name) {
			return noSuchLogger(op.Name)
		}
		if _, ok := loglevel.ParseLevel(*op.Value); !ok {
			return refuse(kerr.InvalidConfig, "Cannot set the log level of %s to %s as it is not a supported log level. Valid log levels are %s", op.Name, *op.Value, known)
		}
	case kmsg.IncrementalAlterConfigOpDelete:
		if !b.levels.Has(op.Name) {
			return noSuchLogger(op.Name)
		}
		if op.Name == loglevel.Root {
			return refuse(kerr.InvalidRequest, "Removing the log level of the root logger is not allowed")
		}
	case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
		return refuse(kerr.InvalidRequest, "%s operation is not allowed for the BROKER_LOGGER resource", op.Op)
	default:
		return refuse(kerr.InvalidRequest, "Unknown operation type %d for %s", int8(op.Op), op.Name)
	}
	return nil
}

func noSuchLogger(name string) error {
	return refuse(kerr.InvalidConfig, "Logger %s does not exist!", name)
}

// checkLoggerNode checks that an alteration of loggers is for this broker.
func (b *Broker) checkLoggerNode(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return refuse(kerr.InvalidRequest, "Node id must be an integer, but it is: %s", name)
	}
	if int32(id) != b.nodeID {
		return refuse(kerr.InvalidRequest, "Unexpected node id. Expected %d, but received %s", b.nodeID, name)
	}
	return nil
}
