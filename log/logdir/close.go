package logdir

import (
	"context"
	"errors"
	"fmt"

	"gregor/log/vfs"
)

// Close syncs and closes all logs and leaves the directory so that the next start need not check them. It may be called again.
// After an error, or with a partition offline, the next start is one after a crash; nothing that was synced is lost.
func (d *Dir) Close() error {
	if !d.halt() {
		return nil
	}
	err := d.closeLogs()
	if err == nil {
		err = d.checkpoint()
	}
	if err == nil && !d.anyOffline() {
		err = writeMarker(d.opts.FS, d.opts.Dir, d.opts.BrokerEpoch)
	}
	if err != nil {
		err = fmt.Errorf("closing log directory %s: %w", d.opts.Dir, err)
	}
	return errors.Join(err, d.drop())
}

// Abandon lets go of everything without writing, as a killed process would.
func (d *Dir) Abandon() {
	if !d.halt() {
		return
	}
	d.release()
}

// halt ends changes and the goroutines; false if that was done before.
func (d *Dir) halt() bool {
	d.mu.Lock()
	if d.mu.closed {
		d.mu.Unlock()
		return false
	}
	d.mu.closed = true
	d.mu.Unlock()
	d.mu.calls.Wait()
	close(d.stop)
	d.running.Wait()
	return true
}

// closeLogs syncs everything with few calls, closes the logs, and syncs the indexes and snapshots that they wrote.
func (d *Dir) closeLogs() error {
	all := d.Partitions()
	if c, ok := d.committer.(interface{ Flush(context.Context) error }); ok {
		for _, p := range all {
			if p.store != nil {
				d.committer.Dirty(p.store)
			}
		}
		if err := c.Flush(context.Background()); err != nil {
			d.opts.Logger.Warn("logs are synced one by one", "error", err)
		}
	}
	errs := make([]error, len(all))
	_ = d.parallel(len(all), func(i int) error { // each is closed, whatever becomes of the others
		if all[i].store != nil {
			errs[i] = all[i].store.Close()
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := d.opts.FS.SyncAll(d.opts.Dir); err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		return err
	}
	return nil
}

func (d *Dir) anyOffline() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, p := range d.mu.partitions {
		if p.err != nil {
			return true
		}
	}
	return false
}

// release gives up all logs and then the directory.
func (d *Dir) release() {
	for _, p := range d.Partitions() {
		if p.store != nil {
			p.store.Abandon()
		}
	}
	if err := d.drop(); err != nil {
		d.opts.Logger.Warn("log directory was not let go well", "dir", d.opts.Dir, "error", err)
	}
}

// drop closes what the Dir has besides logs. The lock goes last.
func (d *Dir) drop() error {
	if d.ownCommit != nil {
		d.ownCommit.Close()
	}
	if d.ownHandle != nil {
		d.ownHandle.Close()
	}
	return d.lock.Close()
}
