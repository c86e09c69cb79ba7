package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gregor/broker/adopt"
	"gregor/broker/meta"
	"gregor/log/vfs"
)

// Export hands the directories of a stopped broker over to Apache Kafka.
type Export struct {
	Dirs []string // log.dirs, the first of which has the metadata
	// Release is the Apache Kafka for ExportKRaft, "4.4"; "" is that.
	Release string
	// FS is the file system, nil for the real one.
	FS vfs.FS
}

// newestRelease is the Apache Kafka that ExportKRaft writes for unless told otherwise.
const newestRelease = "4.4"

// ExportKRaft makes the directories ready for an Apache Kafka in KRaft mode that is broker and controller in one.
func ExportKRaft(ctx context.Context, e Export) (left adopt.Left, err error) {
	if e.Release == "" {
		e.Release = newestRelease
	}
	err = e.with(func(l *adopt.Leave) error {
		left, err = l.ToKRaft(ctx)
		return err
	})
	return left, err
}

// ExportZooKeeper makes the directories ready for an Apache Kafka with ZooKeeper and writes commands for its zookeeper-shell.
func ExportZooKeeper(ctx context.Context, e Export, script io.Writer) (left adopt.Left, err error) {
	err = e.with(func(l *adopt.Leave) error {
		left, err = l.ToZooKeeper(ctx, script)
		return err
	})
	return left, err
}

// with locks the directories and opens the tree.
func (e *Export) with(do func(*adopt.Leave) error) error {
	if e.FS == nil {
		e.FS = vfs.OS()
	}
	if len(e.Dirs) == 0 {
		return errors.New("no directory is named")
	}
	file := filepath.Join(e.Dirs[0], meta.FileName)
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("%s has no metadata of gregor; name its data directory, the first of log.dirs: %w", e.Dirs[0], err)
	}
	release, err := adopt.Lock(adopt.Options{FS: e.FS, Dirs: e.Dirs})
	if err != nil {
		return err
	}
	defer release()
	tree, err := meta.OpenLocal(file)
	if err != nil {
		return err
	}
	err = do(&adopt.Leave{FS: e.FS, Dirs: e.Dirs, Tree: tree, Now: time.Now(), Release: e.Release})
	return errors.Join(err, tree.Close())
}
