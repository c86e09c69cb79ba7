package broker

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gregor/log"
)

// diskAlarm tells the operator that the disk is full: at once, then twice a minute while it lasts, and once when there is room again. Clients
// are told with each answer. Small appends may still fit when large ones do not: room is not told of before an append that failed is some time ago.
type diskAlarm struct {
	full atomic.Int64 // when an append failed last, in Unix nanoseconds; 0 when there is room
	told alarm
}

// roomAfter is how long no append may have failed before there is room again.
const roomAfter = 5 * time.Second

// roomAgain says, once, whether there is room again at a time.
func (d *diskAlarm) roomAgain(now time.Time) bool {
	full := d.full.Load()
	return full != 0 && now.Sub(time.Unix(0, full)) >= roomAfter && d.full.CompareAndSwap(full, 0)
}

// alarm limits lines of the log that many requests could cause. The zero value is ready.
type alarm struct {
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// alarmEvery is the least time between two lines of an alarm.
const alarmEvery = 30 * time.Second

// due reports if a line may be written now, and counts it.
func (a *alarm) due() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Sub(a.last) < alarmEvery {
		return false
	}
	a.last = now
	return true
}

// noteAppend takes note of how an append ended.
func (b *Broker) noteAppend(err error) {
	if err == nil {
		if b.diskAlarm.full.Load() != 0 && b.diskAlarm.roomAgain(b.now()) {
			b.logger.Info("there is room on the disk again, writing goes on", "dir", b.conf.LogDir)
		}
		return
	}
	if !errors.Is(err, log.ErrNoSpace) {
		return
	}
	b.diskAlarm.full.Store(b.now().UnixNano())
	if b.diskAlarm.told.due() {
		b.logger.Error("disk is full: produce requests are refused until there is room; delete topics or files, or make the disk larger",
			"dir", b.conf.LogDir, "error", err)
	}
}
