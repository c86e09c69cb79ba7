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
	Patience time.Duration // how long after the last request's time answers are waited for
	Check    func(frame []byte) error
}

// Result of an OpenLoop.
type Result struct {
	Latency *stats.Samples
	Late    *stats.Samples // how late requests left: what the generator itself adds
	Missing int            // measured requests whose answer did not come in time; they count with the time waited
}

// givesUp is when the run ends, answers or not, after the start.
func (o *OpenLoop) givesUp() time.Duration { return o.Due(o.Warm+o.Count) + o.Patience }

// Due is when request i should leave, after the start.
func (o *OpenLoop) Due(i int) time.Duration { return time.Duration(i) * o.Interval }

// Run sends all requests beginning at start and reads all answers.
func (o *OpenLoop) Run(start time.Time) (Result, error) {
	res := Result{Latency: stats.NewSamples(o.Count), Late: stats.NewSamples(o.Count)}
	ended := make(chan error, 1)
	go func() { ended <- o.write(start, res.Late) }()
	end := time.AfterFunc(o.givesUp()-time.Since(start), o.Conn.Abort)
	defer end.Stop()
	n, err := o.read(start, res.Latency)
	if err != nil {
		o.Conn.Abort()
	}
	err = errors.Join(err, <-ended)
	if time.Since(start) < o.givesUp() {
		return res, err
	}
	res.Missing = o.missing(n, start, res.Latency)
	return res, nil
}

// missing counts every measured request from number n on with the time it has waited so far.
func (o *OpenLoop) missing(n int, start time.Time, latency *stats.Samples) int {
	now := time.Since(start)
	n = max(n, o.Warm)
	for i := n; i < o.Warm+o.Count; i++ {
		latency.Add(now - o.Due(i))
	}
	return o.Warm + o.Count - n
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

// read returns how many answers came.
func (o *OpenLoop) read(start time.Time, latency *stats.Samples) (int, error) {
	for i := range o.Warm + o.Count {
		frame, err := o.Conn.ReadFrame()
		if err != nil {
			return i, err
		}
		if err := o.Check(frame); err != nil {
			return i, err
		}
		if i >= o.Warm {
			latency.Add(time.Since(start) - o.Due(i))
		}
	}
	return o.Warm + o.Count, nil
}
