package broker

import (
	"context"
	"errors"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/meta"
	"gregor/log"
	"gregor/log/batch"
	"gregor/log/logdir"
	"gregor/log/producer"
)

// errorCodes is the one map from the errors of the store and its checks to Kafka's codes, most specific first.
func errorCodes() []errorCode {
	return []errorCode{
		{log.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
		{log.ErrTooLarge, kerr.RecordListTooLarge},
		{log.ErrNoSpace, kerr.KafkaStorageError},
		{log.ErrOffline, kerr.KafkaStorageError},
		{context.DeadlineExceeded, kerr.RequestTimedOut}, // ZooKeeper or another broker is away
		// The metadata tree is a file too; its errors say what of it failed.
		{meta.ErrFailed, kerr.KafkaStorageError},
		{logdir.ErrNoDirectory, kerr.LogDirNotFound},
		{logdir.ErrDirectoryOffline, kerr.KafkaStorageError},
		{logdir.ErrNameTooLong, kerr.InvalidTopicException},
		{logdir.ErrNotFound, kerr.KafkaStorageError}, // its directory is not in use
		{syscall.ENOSPC, kerr.KafkaStorageError},
		{syscall.EMFILE, kerr.KafkaStorageError}, // the log says which limit
		{syscall.ENFILE, kerr.KafkaStorageError},
		// A log is closed when its topic is deleted or the broker stops; either way the client must look again.
		{log.ErrClosed, kerr.NotLeaderForPartition},
		{batch.ErrTooLarge, kerr.MessageTooLarge},
		{batch.ErrFormat, kerr.UnsupportedForMessageFormat},
		{batch.ErrCodec, kerr.UnsupportedCompressionType},
		{batch.ErrTimestamp, kerr.InvalidTimestamp},
		{batch.ErrCorrupt, kerr.CorruptMessage},
		{batch.ErrInvalid, kerr.InvalidRecord},
		{batch.ErrMagic, kerr.InvalidRecord},
		{batch.ErrShort, kerr.InvalidRecord},
		{producer.ErrOutOfOrder, kerr.OutOfOrderSequenceNumber},
		{producer.ErrFenced, kerr.InvalidProducerEpoch},
		{producer.ErrInvalidTxnState, kerr.InvalidTxnState},
		{producer.ErrCoordinatorFenced, kerr.TransactionCoordinatorFenced},
	}
}

type errorCode struct {
	err  error
	code *kerr.Error
}

// kafkaError finds the Kafka error for err: one that err wraps already, the one of the map, KAFKA_STORAGE_ERROR for damage and
// UNKNOWN_SERVER_ERROR for the rest. It returns nil for nil.
func kafkaError(err error) *kerr.Error {
	if err == nil {
		return nil
	}
	var kafka *kerr.Error
	if errors.As(err, &kafka) {
		return kafka
	}
	for _, m := range errorCodes() {
		if errors.Is(err, m.err) {
			return m.code
		}
	}
	var corrupt *log.CorruptError
	if errors.As(err, &corrupt) {
		return kerr.KafkaStorageError
	}
	return kerr.UnknownServerError
}

// code is the number of kafkaError, 0 for nil.
func code(err error) int16 {
	if k := kafkaError(err); k != nil {
		return k.Code
	}
	return 0
}
