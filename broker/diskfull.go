package broker

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gregor/log"
)

// diskAlarm tells the operator that the disk is full: at once, then twice a minute while it lasts, and once when there is room again. Clients
// are told with each answer.
type diskAlarm struct {
	full atomic.Bool

	mu   sync.Mutex
	told time.Time // guarded by mu
}

// alarmEvery is the least time between two lines that say the disk is full.
const alarmEvery = 30 * time.Second

// noteAppend takes note of how an append ended.
func (b *Broker) noteAppend(err error) {
	if err == nil {
		if b.diskAlarm.full.Load() && b.diskAlarm.full.CompareAndSwap(true, false) {
			b.logger.Info("there is room on the disk again, writing goes on", "dir", b.conf.LogDir)
		}
		return
	}
	if !errors.Is(err, log.ErrNoSpace) {
		return
	}
	b.diskAlarm.full.Store(true)
	b.diskAlarm.mu.Lock()
	defer b.diskAlarm.mu.Unlock()
	if now := time.Now(); now.Sub(b.diskAlarm.told) >= alarmEvery {
		b.diskAlarm.told = now
		b.logger.Error("disk is full: produce requests are refused until there is room; delete topics or files, or make the disk larger",
			"dir", b.conf.LogDir, "error", err)
	}
}
