package broker

import (
	"math"
	"time"
)

// slowTick is how often logs look after what is due by time when no topic has a flush.ms: idle producers, snapshots of producer state.
const slowTick = time.Minute

// quickestTick bounds the work that a small flush.ms can ask for.
const quickestTick = 10 * time.Millisecond

// runTicks gives every log its Tick until the broker stops.
func (b *Broker) runTicks() {
	defer b.ticks.Done()
	timer := time.NewTimer(b.tickEvery())
	defer timer.Stop()
	for {
		select {
		case <-b.stopping:
			return
		case <-b.retick:
		case <-timer.C:
			b.tick()
		}
		timer.Reset(b.tickEvery())
	}
}

// tickEvery is half the smallest flush.ms of the topics that have one that matters: a log sees unsynced bytes at one tick and syncs them at a later.
func (b *Broker) tickEvery() time.Duration {
	every := slowTick
	for _, t := range b.topics.all() {
		c := t.config.Load()
		if c.FlushMessages > 1 && c.FlushMs < math.MaxInt64/int64(time.Millisecond) {
			every = min(every, time.Duration(c.FlushMs)*time.Millisecond/2)
		}
	}
	return max(every, quickestTick)
}

func (b *Broker) tick() {
	for _, t := range b.topics.all() {
		for _, p := range *t.partitions.Load() {
			if p.log != nil {
				_ = p.log.Tick() // an offline log has said so
			}
		}
	}
}

// configChanged makes the ticker look at flush.ms again.
func (b *Broker) configChanged() {
	select {
	case b.retick <- struct{}{}:
	default:
	}
}
