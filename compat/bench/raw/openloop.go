package raw

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"gregor/compat/bench/stats"
)

// OpenLoop sends requests at fixed times whether or not answers come, over one connection, and takes each latency from
// the time at which the request should have left, so that neither a slow broker nor a late sender hides anything
// (no coordinated omission).
type OpenLoop struct {
	Conn     *Conn
	Cycle    *Cycle
	Interval time.Duration // between two requests
	Warm     int           // requests before the measured ones
	Count    int           // measured requests
	Check    func(frame []byte) error
}

// Result of an OpenLoop.
type Result struct {
	Latency *stats.Samples
	Late    *stats.Samples // how late requests left: what the generator itself adds
}

// Due is when request i should leave, after the start.
func (o *OpenLoop) Due(i int) time.Duration { return time.Duration(i) * o.Interval }

// Run sends all requests beginning at start and reads all answers.
func (o *OpenLoop) Run(start time.Time) (Result, error) {
	res := Result{Latency: stats.NewSamples(o.Count), Late: stats.NewSamples(o.Count)}
	ended := make(chan error, 1)
	go func() { ended <- o.write(start, res.Late) }()
	err := o.read(start, res.Latency)
	if err != nil {
		o.Conn.Abort()
	}
	return res, errors.Join(err, <-ended)
}

func (o *OpenLoop) write(start time.Time, late *stats.Samples) error {
	runtime.LockOSThread() // the thread's timer slack is changed; it ends with this goroutine
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	next, sent, all := 0, 0, o.Warm+o.Count
	for sent < all {
		wait := o.Due(sent) - time.Since(start)
		if wait > 0 { // the runtime's timers are good for a millisecond only; this is good for microseconds
			ts := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&ts, nil)
			continue
		}
		now := time.Since(start)
		due := min(int(now/o.Interval)+1, all) - sent
		for i := sent; i < sent+due; i++ {
			if i >= o.Warm {
				late.Add(now - o.Due(i))
			}
		}
		var err error
		if next, err = o.Cycle.send(o.Conn, next, due); err != nil {
			o.Conn.Abort()
			return err
		}
		sent += due
	}
	return nil
}

func (o *OpenLoop) read(start time.Time, latency *stats.Samples) error {
	for i := 0; i < o.Warm+o.Count; i++ {
		frame, err := o.Conn.ReadFrame()
		if err != nil {
			return err
		}
		if err := o.Check(frame); err != nil {
			return err
		}
		if i >= o.Warm {
			latency.Add(time.Since(start) - o.Due(i))
		}
	}
	return nil
}
