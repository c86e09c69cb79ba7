package broker

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/fetchsession"
	"gregor/broker/quota"
	"gregor/log"
	"gregor/wire"
)

// Fetch (key 1), versions 0 to 18. What is special to versions 0 to 3 is in fetchconvert.go.
//
//   - The answer is ranges of segment files, cut to the high watermark and to the limits of the request. The first partition that has data gives at
//     least its first batch whole (KIP-74); partitions are served in request order, or in session order.
//   - Too few bytes: the request waits, watching every partition that it names, until min_bytes are there, an error shows, a partition
//     has reached its own limit, or max_wait passed.
//   - v7 has sessions (KIP-227, package fetchsession), v12 finds diverging logs, v13 names topics by id.

// handleFetch answers at once, or leaves a pendingFetch.
func (b *Broker) handleFetch(ctx context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.FetchRequest)
	f, err := b.newFetch(r, req)
	if err != nil {
		code := kerr.UnknownServerError.Code
		var unusable *fetchsession.Error
		if errors.As(err, &unusable) {
			code = unusable.Code
		}
		return wire.Reply{Body: &fetchBody{errorCode: code}}
	}
	f.read()
	now := time.Now()
	if f.satisfied() || !now.Before(f.deadline) {
		return f.reply()
	}
	f.releaseAll()
	f.over = ctx.Done()
	if reply, ready := f.Poll(now); ready { // puts the watches in place
		return reply
	}
	return wire.Reply{Pending: f}
}

// newFetch turns a request, with its session, into the partitions to read.
func (b *Broker) newFetch(r *kmsg.FetchRequest, req *wire.Request) (*fetch, error) {
	now := time.Now()
	session, err := b.sessions.Begin(r, false, now)
	if err != nil {
		return nil, err
	}
	f := &fetch{
		broker:   b,
		session:  session,
		version:  r.Version,
		wake:     req.Wake,
		clientID: req.ClientID,
		peer:     req.Conn.Remote,
		deadline: now.Add(time.Duration(max(r.MaxWaitMillis, 0)) * time.Millisecond),
		maxBytes: int(min(r.MaxBytes, b.conf.FetchMaxBytes)),
		limit:    log.ToHighWatermark,
		parts:    make([]fetchPart, session.Len()),
	}
	if b.quotas.Any(quota.Consume) {
		f.maxBytes = int(min(float64(f.maxBytes), b.quotas.Window(quota.Consume, anonymous, req.ClientID)))
	}
	f.minBytes = min(int(r.MinBytes), f.maxBytes)
	if r.IsolationLevel == 1 {
		f.limit = log.ToLastStable
	}
	for i := range f.parts {
		p := &f.parts[i]
		p.Partition = *session.Partition(i)
		p.watch.fetch = f
		var t *topic
		if r.Version >= 13 {
			t = b.topics.id(p.TopicID)
		} else {
			t = b.topics.name(p.Topic)
		}
		if t != nil {
			p.partition = t.partition(p.Partition.Partition)
		}
		if p.partition == nil {
			p.fail(unknownTopic(r.Version, t))
		}
	}
	return f, nil
}

func unknownTopic(version int16, t *topic) error {
	if version >= 13 && t == nil {
		return kerr.UnknownTopicID
	}
	return kerr.UnknownTopicOrPartition
}

// fetch is one request that is being answered. It is used on its connection's goroutine only; its watches are woken from others.
type fetch struct {
	broker   *Broker
	session  *fetchsession.Context
	parts    []fetchPart
	version  int16
	wake     func()
	clientID string
	peer     net.Addr
	over     <-chan struct{} // closed when nobody waits for more: the peer hung up or the broker stops
	deadline time.Time
	minBytes int
	maxBytes int
	limit    log.ReadLimit

	got    int  // bytes read
	kept   int  // bytes of them that are converted and in memory
	failed bool // an error, a diverging epoch or a full partition: answer now
}

// read reads every partition again, in order, within the limits.
func (f *fetch) read() {
	f.got, f.kept, f.failed = 0, 0, false
	for i := range f.parts {
		p := &f.parts[i]
		if p.partition != nil {
			f.readPart(p)
		}
		f.got += p.size()
		if p.errorCode != 0 || p.diverging || p.size() >= int(p.MaxBytes) {
			f.failed = true
		}
	}
}

func (f *fetch) readPart(p *fetchPart) {
	p.errorCode, p.diverging = 0, false
	if err := p.partition.offline(); err != nil {
		p.fail(err)
		return
	}
	if err := p.partition.checkEpoch(p.CurrentLeaderEpoch); err != nil {
		p.fail(err)
		return
	}
	if err := p.partition.closed(p.partition.topic.config.Load().Readable, "gregor.read.enabled"); err != nil {
		p.fail(err)
		return
	}
	l := p.partition.log
	if p.LastFetchedEpoch >= 0 && f.diverges(p, l) {
		return
	}
	// Taken before the slice, so that a watch from here misses nothing that the slice does not have.
	p.readable = l.HighWatermark()
	if f.limit == log.ToLastStable {
		p.readable = l.LastStable()
	}
	slice, err := f.slice(p, l)
	if err == nil && slice.Size == 0 && p.converted == nil {
		err = l.Err() // nothing more will come of a log whose disk failed
	}
	if err != nil {
		p.fail(f.goneError(p, err))
		return
	}
	// The watermarks are read after the slice, so that they are never below its end.
	p.slice = slice
	p.hw, p.lso, p.start = l.HighWatermark(), l.LastStable(), l.StartOffset()
}

// goneError says of a closed log what its reader must know: that the topic was deleted, if it was.
func (f *fetch) goneError(p *fetchPart, err error) error {
	if errors.Is(err, log.ErrClosed) && p.partition.topic.deleted.Load() {
		return unknownTopic(f.version, nil)
	}
	return err
}

// slice reads within what the request has left. Only the first partition with data may go over it.
func (f *fetch) slice(p *fetchPart, l *log.Log) (log.Slice, error) {
	left := max(min(f.maxBytes-f.got, int(p.MaxBytes)), 0)
	if f.version < 4 {
		return f.olderSlice(p, l, left)
	}
	first := f.got == 0
	slice, err := l.Read(p.FetchOffset, left, f.limit, first)
	if err == nil && !first && slice.Size < slice.FirstBatch {
		slice.Release()
		slice = log.Slice{}
	}
	return slice, err
}

// diverges compares the reader's last epoch with ours (KIP-595): a reader that has records of that epoch beyond our end of it must truncate.
func (f *fetch) diverges(p *fetchPart, l *log.Log) bool {
	epoch, end, ok := l.EpochEnd(p.LastFetchedEpoch)
	if !ok {
		p.fail(kerr.OffsetOutOfRange)
		return true
	}
	if epoch == p.LastFetchedEpoch && end >= p.FetchOffset {
		return false
	}
	p.diverging, p.endEpoch, p.endOffset = true, epoch, end
	p.hw, p.lso, p.start = l.HighWatermark(), l.LastStable(), l.StartOffset()
	return true
}

// fail makes p answer an error.
func (p *fetchPart) fail(err error) {
	p.errorCode = code(err)
	p.hw, p.lso, p.start = -1, -1, -1
}

// satisfied reports if the answer need not wait.
func (f *fetch) satisfied() bool {
	return f.failed || f.got >= f.minBytes || len(f.parts) == 0
}

// finish makes the answer of what was read last: all partitions, or in a session those with news. The body owns the slices.
func (f *fetch) finish() *fetchBody {
	body := &fetchBody{sessionID: f.session.SessionID(), committed: f.limit == log.ToLastStable, parts: make([]*fetchPart, 0, len(f.parts))}
	for i := range f.parts {
		p := &f.parts[i]
		if body.committed {
			f.findAborted(p)
		}
		include := f.session.Include(i, fetchsession.Answer{
			HighWatermark: p.hw, LastStableOffset: p.lso, LogStartOffset: p.start,
			Error: p.errorCode != 0, Records: p.size() > 0, Redirect: p.diverging,
		})
		if include {
			body.parts = append(body.parts, p)
		}
	}
	f.session.End()
	return body
}

// findAborted finds the aborted transactions that the reader of p's records must know. Without them he may not have the records.
func (f *fetch) findAborted(p *fetchPart) {
	p.aborted = nil
	if p.slice.Size == 0 {
		return
	}
	var err error
	if p.aborted, err = p.partition.log.AbortedFor(p.FetchOffset, &p.slice); err != nil {
		p.release()
		p.fail(f.goneError(p, err))
	}
}

func (f *fetch) releaseAll() {
	for i := range f.parts {
		f.parts[i].release()
	}
	f.got = 0
}

func (p *fetchPart) release() {
	if p.slice.Size > 0 {
		p.slice.Release()
	}
	p.slice = log.Slice{}
	if p.converted != nil {
		p.converted.release()
		p.converted = nil
	}
}

// size is how many bytes of records p answers.
func (p *fetchPart) size() int {
	if p.converted != nil {
		return p.converted.size
	}
	return p.slice.Size
}

// Deadline implements wire.Pending.
func (f *fetch) Deadline() time.Time { return f.deadline }

// Poll implements wire.Pending. A partition is watched from what the last read of it could see, so that nothing falls between a read and
// its watch: if the log went on meanwhile, Watch says so at once and the partition is read again.
func (f *fetch) Poll(now time.Time) (wire.Reply, bool) {
	late := f.late(now)
	for f.news() || late {
		f.read()
		if f.satisfied() || late {
			f.unwatch()
			return f.reply(), true
		}
		f.releaseAll()
	}
	return wire.Reply{}, false
}

// late reports that the answer goes out with what there is.
func (f *fetch) late(now time.Time) bool {
	select {
	case <-f.over:
		return true
	default:
		return !now.Before(f.deadline)
	}
}

// news puts every watch in place that is not, and reports if any partition went on since it was read.
func (f *fetch) news() bool {
	any := false
	for i := range f.parts {
		if f.parts[i].news(f.limit) {
			any = true
		}
	}
	return any
}

// Cancel implements wire.Pending.
func (f *fetch) Cancel() {
	f.unwatch()
	f.session.Cancel()
}

func (f *fetch) unwatch() {
	for i := range f.parts {
		p := &f.parts[i]
		if p.watch.on && p.partition != nil && p.partition.log != nil {
			p.partition.log.Unwatch(&p.watch)
		}
		p.watch.on = false
	}
}
