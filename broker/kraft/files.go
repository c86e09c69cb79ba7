package kraft

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// Limits of the batches that are written; Kafka's controllers write batches of up to 10,000 records and 8 MiB.
const (
	batchRecords = 1000
	batchBytes   = 1 << 20
)

// Types of control records (KIP-630).
const (
	snapshotHeader = 3
	snapshotFooter = 4
)

// firstEpoch is the leader epoch of records in metadata that did not exist before.
const firstEpoch = 1

// format makes a metadata directory as `kafka-storage format` does with a static quorum: a snapshot at offset 0 with the features. It is no
// state: what counts is in the log, where Kafka's first controller repeats it and Write does.
func format(fsys vfs.FS, dir string, w *Wanted) error {
	var id [16]byte
	id[15] = 1 // Kafka's reserved id of the metadata topic
	snap, err := snapshotOf(features(w), w.NowMs)
	if err != nil {
		return err
	}
	// A name of its own until it is whole: a crash leaves either nothing or all.
	tmp := dir + ".tmp"
	if err := fsys.RemoveAll(tmp); err != nil {
		return err
	}
	if err := fsys.MkdirAll(tmp); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		snapshot{}.name():         snap,
		"partition.metadata":      []byte("version: 0\ntopic_id: " + base64.RawURLEncoding.EncodeToString(id[:])),
		"leader-epoch-checkpoint": fmt.Appendf(nil, "0\n1\n%d 0\n", firstEpoch),
	} {
		if err := writeFile(fsys, filepath.Join(tmp, name), content); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(tmp); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, dir); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(dir))
}

func snapshotOf(records [][]byte, nowMs int64) ([]byte, error) {
	header := binary.BigEndian.AppendUint64([]byte{0, 0}, uint64(nowMs))
	out, err := control(nil, 0, snapshotHeader, append(header, 0), nowMs)
	if err != nil {
		return nil, err
	}
	if out, err = batches(out, 1, 0, records, nowMs); err != nil {
		return nil, err
	}
	return control(out, int64(1+len(records)), snapshotFooter, []byte{0, 0, 0}, nowMs)
}

func control(dst []byte, offset int64, kind byte, value []byte, nowMs int64) ([]byte, error) {
	var b batch.Builder
	b.Reset(batch.Options{BaseOffset: offset, Control: true})
	b.Append(nowMs, []byte{0, 0, 0, kind}, value)
	return b.Finish(dst)
}

// batches appends records as batches from an offset on.
func batches(dst []byte, offset int64, epoch int32, records [][]byte, nowMs int64) ([]byte, error) {
	var b batch.Builder
	var err error
	flush := func() {
		if b.Len() > 0 && err == nil {
			offset += int64(b.Len())
			dst, err = b.Finish(dst)
		}
		b.Reset(batch.Options{BaseOffset: offset, LeaderEpoch: epoch})
	}
	flush()
	for _, r := range records {
		if b.Len() == batchRecords || b.Size()+len(r) > batchBytes {
			flush()
		}
		b.Append(nowMs, nil, r)
	}
	flush()
	return dst, err
}

// appendSegment appends records in a new segment at the end of the log.
func appendSegment(fsys vfs.FS, dir string, st *State, records [][]byte, nowMs int64) error {
	content, err := batches(nil, st.End, max(st.Epoch, firstEpoch), records, nowMs)
	if err != nil {
		return err
	}
	if err := cutTail(fsys, dir, st); err != nil {
		return err
	}
	if st.Base == st.End { // an empty segment has the name; its indexes have nothing either
		for _, ext := range []string{".index", ".timeindex", ".txnindex"} {
			name := strings.TrimSuffix(filepath.Join(dir, segmentName(st.End)), ".log") + ext
			if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	name := filepath.Join(dir, segmentName(st.End))
	if err := writeFile(fsys, name+".tmp", content); err != nil {
		return err
	}
	if err := fsys.Rename(name+".tmp", name); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// cutTail takes what is no whole batch off the newest segment, as Kafka does: else Kafka would take all that follows with it.
func cutTail(fsys vfs.FS, dir string, st *State) error {
	if st.Torn == 0 {
		return nil
	}
	f, err := fsys.Open(filepath.Join(dir, segmentName(st.Base)))
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		err = f.Truncate(size - st.Torn)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeFile makes a synced file in place of any of that name.
func writeFile(fsys vfs.FS, name string, content []byte) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
