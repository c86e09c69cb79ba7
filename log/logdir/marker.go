package logdir

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"gregor/log/vfs"
)

const (
	markerFile    = ".kafka_cleanshutdown"
	maxMarkerSize = 4 << 10
)

// marker is the content of the clean shutdown file, version 0. That the file is there says it all; the content is only the
// epoch of the broker's registration.
type marker struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

// lookForMarker says if the last stop was clean, without taking the marker: Options.Locked may ask.
func (d *Dir) lookForMarker() {
	_, there, err := readIfThere(d.opts.FS, filepath.Join(d.opts.Dir, markerFile), maxMarkerSize)
	d.clean = there && err == nil
}

// takeMarker removes the marker, durably, and notes whether it was there.
func (d *Dir) takeMarker() error {
	fsys, name := d.opts.FS, filepath.Join(d.opts.Dir, markerFile)
	_, there, err := readIfThere(fsys, name, maxMarkerSize)
	if err == nil && !there {
		return nil
	}
	d.clean = err == nil // one that cannot be read is worth nothing
	if err := fsys.Remove(name); err != nil {
		return fmt.Errorf("removing the marker of the last clean stop: %w", err)
	}
	return fsys.SyncDir(d.opts.Dir)
}

// writeMarker is the last thing that a clean stop writes; it syncs dir.
func writeMarker(fsys vfs.FS, dir string, brokerEpoch int64) error {
	b, err := json.Marshal(marker{BrokerEpoch: brokerEpoch})
	if err != nil {
		return err
	}
	if err := writeNew(fsys, filepath.Join(dir, markerFile), b); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// markerEpoch is the broker epoch in a marker, -1 when it has none.
func markerEpoch(b []byte) int64 {
	m := marker{BrokerEpoch: -1}
	if json.Unmarshal(b, &m) != nil {
		return -1
	}
	return m.BrokerEpoch
}
