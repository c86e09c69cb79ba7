package log

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"

	"gregor/log/vfs"
)

// maxEpochFile bounds the checkpoint in bytes: far more leader changes than any partition sees.
const maxEpochFile = 16 << 20

// epochList are the leader epochs of a log, ascending in both fields. It is immutable.
type epochList []EpochStart

// assign adds an epoch that starts at start. Epochs that would not be below it in both fields never wrote anything that is
// still there, and go. An epoch that is not newer changes nothing.
func (list epochList) assign(epoch int32, start int64) (epochList, bool) {
	if epoch < 0 || len(list) > 0 && list[len(list)-1].Epoch >= epoch {
		return list, false
	}
	kept := list.truncateEnd(start)
	return append(slices.Clip(kept), EpochStart{Epoch: epoch, Start: start}), true
}

// truncateEnd drops the epochs that start at end or above: they have no record.
func (list epochList) truncateEnd(end int64) epochList {
	return list[:sort.Search(len(list), func(i int) bool { return list[i].Start >= end })]
}

// first is the place of the epoch that holds start, or else of the first.
func (list epochList) first(start int64) int {
	return max(0, sort.Search(len(list), func(i int) bool { return list[i].Start > start })-1)
}

// truncateStart drops the epochs that end at or below start; the one that holds it begins there.
func (list epochList) truncateStart(start int64) epochList {
	if len(list) == 0 || list[0].Start >= start {
		return list
	}
	kept := slices.Clone(list[list.first(start):])
	kept[0].Start = max(kept[0].Start, start)
	return kept
}

// end answers OffsetForLeaderEpoch for a log of the offsets [logStart, logEnd).
func (list epochList) end(epoch int32, logStart, logEnd int64) (floor int32, end int64, ok bool) {
	if epoch < 0 || len(list) == 0 {
		return -1, -1, false
	}
	list = list[list.first(logStart):]
	next := sort.Search(len(list), func(i int) bool { return list[i].Epoch > epoch })
	switch newest := list[len(list)-1].Epoch; {
	case epoch == newest:
		return epoch, logEnd, true
	case epoch > newest:
		return -1, -1, false
	case next == 0:
		// Older than all that is known: whoever asks agrees with us on nothing above our first epoch's start.
		return epoch, max(list[0].Start, logStart), true
	}
	return list[next-1].Epoch, list[next].Start, true
}

// encode makes Kafka's leader-epoch-checkpoint: version, count, then epoch and start offset a line.
func (list epochList) encode() []byte {
	b := strconv.AppendInt([]byte("0\n"), int64(len(list)), 10)
	b = append(b, '\n')
	for _, e := range list {
		b = strconv.AppendInt(b, int64(e.Epoch), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, e.Start, 10)
		b = append(b, '\n')
	}
	return b
}

var errEpochFile = errors.New("not a leader epoch checkpoint")

func decodeEpochs(b []byte) (epochList, error) {
	if !bytes.HasSuffix(b, []byte("\n")) {
		return nil, fmt.Errorf("%w: the last line has no end", errEpochFile) // a torn one may still be a number
	}
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	if len(lines) < 2 || string(lines[0]) != "0" {
		return nil, fmt.Errorf("%w: no version 0", errEpochFile)
	}
	if count, err := strconv.Atoi(string(lines[1])); err != nil || count != len(lines)-2 {
		return nil, fmt.Errorf("%w: %d lines, count is %.20q", errEpochFile, len(lines)-2, lines[1])
	}
	list := make(epochList, 0, len(lines)-2)
	for _, line := range lines[2:] {
		left, right, _ := bytes.Cut(line, []byte(" "))
		epoch, err1 := strconv.ParseInt(string(left), 10, 32)
		start, err2 := strconv.ParseInt(string(right), 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return nil, fmt.Errorf("%w: line %.60q", errEpochFile, line)
		}
		if n := len(list); n > 0 && (list[n-1].Epoch >= int32(epoch) || list[n-1].Start >= start) {
			return nil, fmt.Errorf("%w: line %.60q does not ascend", errEpochFile, line)
		}
		list = append(list, EpochStart{Epoch: int32(epoch), Start: start})
	}
	return list, nil
}

// AssignEpoch records that offsets from start on are written under epoch. Older or equal epochs change nothing. It is durable
// before an offset of the epoch is.
func (l *Log) AssignEpoch(epoch int32, start int64) error {
	l.mu.Lock()
	err := l.writable()
	if err == nil {
		err = l.assignEpoch(epoch, start)
	}
	l.mu.Unlock()
	if err == nil {
		l.markDirty()
	}
	return err
}

// assignEpoch does it with Log.mu held.
func (l *Log) assignEpoch(epoch int32, start int64) error {
	list, changed := l.epochs().assign(epoch, start)
	if !changed {
		return nil
	}
	return l.setEpochs(list)
}

// setEpochs publishes list and writes the checkpoint. Log.mu must be held.
//
// The file is replaced by a rename, and file and directory are synced with the next sync, before offsets of the new epoch count
// as durable. If a crash leaves an older checkpoint the missing epochs are above the recovery point and found again in the
// batches; if it leaves none or an empty one all batches are read.
func (l *Log) setEpochs(list epochList) error {
	if slices.Equal(list, l.epochs()) {
		return nil
	}
	if err := l.writeEpochs(list); err != nil {
		return l.storageFailed(fmt.Errorf("writing the leader epochs: %w", err))
	}
	l.epochsNow.Store(&list)
	return nil
}

func (l *Log) writeEpochs(list epochList) error {
	if err := l.replaceFile(epochFile, list.encode()); err != nil {
		return err
	}
	l.needSync(&fileSync{l, epochFile})
	return nil
}

// replaceFile writes a small file beside and renames it into place.
func (l *Log) replaceFile(name string, content []byte) error {
	path := filepath.Join(l.Dir(), name)
	if err := writeFile(l.fs, path+".tmp", content); err != nil {
		return err
	}
	return l.fs.Rename(path+".tmp", path)
}

// writeFile makes a file with content; one that is there is left from a crash and goes.
func writeFile(fsys vfs.FS, path string, content []byte) error {
	f, err := fsys.Create(path)
	if err != nil {
		if removeErr := fsys.Remove(path); removeErr != nil {
			return err
		}
		if f, err = fsys.Create(path); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Close())
}

func (l *Log) epochs() epochList { return *l.epochsNow.Load() }

// LatestEpoch is the newest epoch that has a start offset.
func (l *Log) LatestEpoch() (int32, bool) {
	list := l.epochs()
	if len(list) == 0 {
		return 0, false
	}
	return list[len(list)-1].Epoch, true
}

// EpochEnd answers OffsetForLeaderEpoch: the largest known epoch that is not above the asked one, and the offset where it
// ended. An epoch below all known ends where the first known starts. ok is false, with -1 and -1, for epochs above all known.
func (l *Log) EpochEnd(epoch int32) (floor int32, end int64, ok bool) {
	return l.epochs().end(epoch, l.StartOffset(), l.EndOffset())
}
