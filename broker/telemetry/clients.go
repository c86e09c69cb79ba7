package telemetry

import (
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"time"
)

// Errors of Push and Subscribe, matched with errors.Is.
var (
	ErrTooEarly     = errors.New("the client's next interval has not begun")                 // THROTTLING_QUOTA_EXCEEDED
	ErrSubscription = errors.New("the subscription is not the client's present one")         // UNKNOWN_SUBSCRIPTION_ID
	ErrTerminated   = errors.New("the client said before that it sends nothing any more")    // INVALID_REQUEST
	ErrID           = errors.New("the client instance id is not one that a client can have") // INVALID_REQUEST
)

// Bounds.
const (
	// MaxClients is how many clients are remembered.
	MaxClients = 4096
	// MaxValues is how many values are kept of all clients, MaxClientValues of one.
	MaxValues, MaxClientValues = 20_000, 2_000
	// DefaultInterval is how often a client asks that sends nothing, as in Kafka.
	DefaultInterval = 5 * time.Minute
	leastMemory     = time.Minute // a client is remembered for three intervals, but not less than this
	pruneEvery      = 10 * time.Second
)

// ID is a client instance id: what a client calls itself for as long as it lives, made by the first broker that it asks.
type ID [16]byte

// Terms are what is asked of a client. Of two sets with one Generation the Wanted of a client are the same.
type Terms struct {
	Generation uint64
	Wanted     func(ID) Wanted
}

// Wanted is what a client is to send: prefixes of names ("" is all of them, no prefix nothing) and how often.
type Wanted struct {
	Metrics  []string
	Interval time.Duration
}

// Client is how a client is shown.
type Client struct {
	ClientID, SoftwareName, SoftwareVersion string
}

// Subscription is what a client is told.
type Subscription struct {
	ID     int32
	Wanted // must not be changed
}

// Clients are the clients that were heard of.
type Clients struct {
	mu     sync.Mutex
	all    map[ID]*client
	values int // kept of all
	pruned time.Time
	stats  Stats
}

// Stats counts what was done since the start.
type Stats struct {
	Clients, Values                      int
	Pushes, Refused, Dropped, Unreadable int64 // Dropped are values beyond the bounds
}

// client is one client instance.
type client struct {
	Client
	generation uint64
	subscription
	asked, pushed, seen time.Time
	mayAsk              bool // before its interval: it was sent back to ask
	mayPush             bool // before its interval: it has asked since the last push
	ended               bool
	samples             []Sample
}

type subscription = Subscription

// New returns an empty set.
func New() *Clients { return &Clients{all: map[ID]*client{}} }

// Subscribe answers a client that asks what to send.
func (c *Clients) Subscribe(id ID, who Client, terms Terms, now time.Time) (Subscription, error) {
	if !id.valid() {
		return Subscription{}, ErrID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.client(id, who, terms, now)
	last := k.asked
	if k.pushed.After(last) {
		last = k.pushed
	}
	if !last.IsZero() && now.Sub(last) < k.Interval && !k.mayAsk {
		c.stats.Refused++
		return Subscription{}, ErrTooEarly
	}
	k.asked, k.mayAsk, k.mayPush = now, false, true
	return k.subscription, nil
}

// Check says whether a client may push now. It takes the turn: what is sent before the next interval is too early.
func (c *Clients) Check(id ID, who Client, subscription int32, terminating bool, terms Terms, now time.Time) error {
	if !id.valid() {
		return ErrID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.client(id, who, terms, now)
	err := k.admit(subscription, terminating, now)
	if err != nil {
		c.stats.Refused++
	}
	return err
}

func (k *client) admit(subscription int32, terminating bool, now time.Time) error {
	if k.ended {
		return ErrTerminated
	}
	k.ended = terminating
	early := !k.mayPush && !k.pushed.IsZero() && now.Sub(k.pushed) < k.Interval
	if early && !terminating {
		return ErrTooEarly
	}
	k.pushed, k.mayPush = now, false
	if subscription != k.subscription.ID {
		k.mayAsk = true
		return ErrSubscription
	}
	return nil
}

// AskAgain lets a client ask before its next interval: it was told to do something else.
func (c *Clients) AskAgain(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Refused++
	if k := c.all[id]; k != nil {
		k.mayAsk = true
	}
}

// Unreadable counts a push that could not be read.
func (c *Clients) Unreadable() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Unreadable++
}

// Keep takes the values of a push in, in place of those before. It keeps the slice.
func (c *Clients) Keep(id ID, samples []Sample, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Pushes++
	c.stats.Dropped += int64(dropped)
	k := c.all[id]
	if k == nil {
		return // forgotten in favour of others meanwhile
	}
	c.values -= len(k.samples)
	if room := MaxValues - c.values; len(samples) > room {
		c.stats.Dropped += int64(len(samples) - room)
		samples = samples[:room]
	}
	k.samples = samples
	c.values += len(samples)
}

// client finds or makes the client. c.mu is held.
func (c *Clients) client(id ID, who Client, terms Terms, now time.Time) *client {
	k := c.all[id]
	if k == nil {
		c.makeRoom(now)
		k = new(client)
		c.all[id] = k
	}
	if k.subscription.ID == 0 || k.generation != terms.Generation {
		next := terms.Wanted(id)
		if sum := subscriptionID(id, next); sum != k.subscription.ID { // what was too early by the old terms may not be by these
			k.subscription = Subscription{sum, next}
			k.asked, k.pushed = time.Time{}, time.Time{}
		}
		k.generation = terms.Generation
	}
	k.Client, k.seen = who, now
	return k
}

// makeRoom forgets clients that are gone, and the one that was not heard of for longest if that is not enough.
func (c *Clients) makeRoom(now time.Time) {
	if len(c.all) < MaxClients && now.Sub(c.pruned) < pruneEvery {
		return
	}
	c.prune(now)
	if len(c.all) < MaxClients {
		return
	}
	var oldest ID
	var seen time.Time
	for id, k := range c.all {
		if seen.IsZero() || k.seen.Before(seen) {
			oldest, seen = id, k.seen
		}
	}
	c.forget(oldest)
}

func (c *Clients) prune(now time.Time) {
	c.pruned = now
	for id, k := range c.all {
		if now.Sub(k.seen) > max(leastMemory, 3*k.Interval) {
			c.forget(id)
		}
	}
}

func (c *Clients) forget(id ID) {
	c.values -= len(c.all[id].samples)
	delete(c.all, id)
}

// Each calls f with each client that has values and its values, in the order of the ids; neither may be kept or changed.
func (c *Clients) Each(now time.Time, f func(ID, Client, []Sample)) {
	c.mu.Lock()
	c.prune(now)
	type shown struct {
		id      ID
		who     Client
		samples []Sample
	}
	var all []shown
	for id, k := range c.all {
		if len(k.samples) > 0 {
			all = append(all, shown{id, k.Client, k.samples})
		}
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b shown) int { return slices.Compare(a.id[:], b.id[:]) })
	for _, s := range all {
		f(s.id, s.who, s.samples)
	}
}

// Stats is what was counted.
func (c *Clients) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Clients, s.Values = len(c.all), c.values
	return s
}

// valid says that the id is none of Kafka's reserved ones, 0 and 1.
func (id ID) valid() bool { return id != ID{} && id != ID{15: 1} }

// subscriptionID is a number for what a client is asked for, another one for other terms; never 0.
func subscriptionID(id ID, w Wanted) int32 {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write(id[:])
	sum.Write([]byte(strings.Join(w.Metrics, "\x00") + "\x00" + w.Interval.String()))
	return max(int32(sum.Sum32()&0x7fffffff), 1)
}
