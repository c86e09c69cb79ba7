package logdir

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// TopicPartition names a log.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the directory.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.FormatInt(int64(tp.Partition), 10)
}

// Suffixes of directories that hold no live log, after a dot and 32 hex digits.
const (
	deleteSuffix = "-delete"
	futureSuffix = "-future" // the copy of a log that moves between directories
	straySuffix  = "-stray"  // not assigned to this broker
)

const (
	maxName = 255 // bytes of a file name
	hexLen  = 32
)

// dirKind is what a directory is, by its name.
type dirKind int

const (
	foreign dirKind = iota // none of ours
	live
	deleted
	future
	stray
	metadata // KRaft's own log, which is Kafka's alone
)

// metadataDir is the log of Kafka's controllers in KRaft mode. It is left as it is: Kafka goes on with it when the directory goes back.
const metadataDir = "__cluster_metadata-0"

// parseName takes the name of a directory apart. The partition is what follows the last hyphen, as in Kafka; a number that
// String would not write, such as 00 or +1, is foreign, so that no two directories are one partition.
func parseName(name string) (TopicPartition, dirKind) {
	if name == metadataDir {
		return TopicPartition{}, metadata
	}
	suffixes := []struct {
		suffix string
		kind   dirKind
	}{{deleteSuffix, deleted}, {futureSuffix, future}, {straySuffix, stray}}
	for _, s := range suffixes {
		rest, ok := strings.CutSuffix(name, s.suffix)
		if !ok {
			continue
		}
		if len(rest) <= hexLen || rest[len(rest)-hexLen-1] != '.' || !isHex(rest[len(rest)-hexLen:]) {
			return TopicPartition{}, foreign
		}
		tp, ok := parsePartition(rest[:len(rest)-hexLen-1])
		if !ok {
			return TopicPartition{}, foreign
		}
		return tp, s.kind
	}
	tp, ok := parsePartition(name)
	if !ok {
		return TopicPartition{}, foreign
	}
	return tp, live
}

func parsePartition(name string) (TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	tp := TopicPartition{Topic: name[:i], Partition: int32(n)}
	if err != nil || !tp.valid() || tp.String() != name {
		return TopicPartition{}, false
	}
	return tp, true
}

// valid reports whether tp can be a directory and a line of a checkpoint. Which topic names are allowed is not decided here.
func (tp TopicPartition) valid() bool {
	if tp.Topic == "" || tp.Partition < 0 || len(tp.String()) > maxName {
		return false
	}
	return strings.IndexFunc(tp.Topic, func(r rune) bool { return r <= ' ' || r == '/' || r == '\\' || r == 0x7f }) < 0
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// deletedName is the name that tp's directory gets when it is deleted; the topic is cut so that it fits.
func deletedName(tp TopicPartition) string {
	tail := randomTail(tp, deleteSuffix)
	return tp.Topic[:min(len(tp.Topic), maxName-len(tail))] + tail
}

// futureName is the name of the directory that a copy of tp grows in. It may be longer than a name can be.
func futureName(tp TopicPartition) string { return tp.Topic + randomTail(tp, futureSuffix) }

func randomTail(tp TopicPartition, suffix string) string {
	var id [hexLen / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	return fmt.Sprintf("-%d.%s%s", tp.Partition, hex.EncodeToString(id[:]), suffix)
}
