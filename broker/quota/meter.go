package quota

import "time"

// meter measures a rate over windows of time as Kafka's sampled rates do: the sum of the last samples, divided by the time that they span, but
// by no less than all but one of them: whoever was quiet may use up what the window holds at once.
type meter struct {
	samples []sample
	at      int // the current one
}

type sample struct {
	start time.Time
	sum   float64
}

// record adds to the current sample.
func (m *meter) record(now time.Time, v float64, windows int, window time.Duration) {
	if len(m.samples) == 0 {
		m.samples = append(m.samples, sample{start: now})
	}
	if s := &m.samples[m.at]; now.Sub(s.start) >= window {
		m.at = (m.at + 1) % windows
		if m.at == len(m.samples) {
			m.samples = append(m.samples, sample{})
		}
		m.samples[m.at] = sample{start: now}
	}
	m.samples[m.at].sum += v
}

// rate is per second.
func (m *meter) rate(now time.Time, windows int, window time.Duration) float64 {
	oldest, sum := now, 0.0
	for i := range m.samples {
		s := &m.samples[i]
		if now.Sub(s.start) >= time.Duration(windows)*window {
			*s = sample{start: now} // too old to count, as if it were empty
		}
		sum += s.sum
		if s.start.Before(oldest) {
			oldest = s.start
		}
	}
	span := now.Sub(oldest)
	if missing := windows - 1 - int(span/window); missing > 0 {
		span += time.Duration(missing) * window
	}
	return sum / max(span, time.Millisecond).Seconds()
}

// bucket holds tokens that come at a rate, up to what the windows hold; each change of a partition takes one (KIP-599). It may go below zero:
// who took the last ones waits until they are back.
type bucket struct {
	tokens float64
	last   time.Time // zero: full
}

func (b *bucket) refill(now time.Time, rate, most float64) {
	if b.last.IsZero() {
		b.tokens = most
	} else {
		b.tokens = min(most, b.tokens+rate*now.Sub(b.last).Seconds())
	}
	b.last = now
}
