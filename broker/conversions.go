package broker

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"gregor/wire"
)

// maxConversionClients bounds the client ids that conversions are counted for. What others cause is counted together: ids come from outside.
const maxConversionClients = 200

// conversions counts the records that are converted between message formats, by the client ids that cause it: who wants to get rid of them
// looks here for the clients that are left. The first time that an id causes any is logged.
type conversions struct {
	logger *slog.Logger

	mu      sync.Mutex
	clients map[string]*conversionCount
	rest    conversionCount // of ids beyond the bound
}

// conversionCount is what one client id caused, in records and bytes: of a produced set as it came, of a fetched one as it went.
type conversionCount struct {
	produced, producedBytes atomic.Int64
	fetched, fetchedBytes   atomic.Int64
	version                 atomic.Int32 // of the API, the last time
}

// Conversions is what one client id caused so far.
type Conversions struct {
	ClientID string // "" of clients without one; of Others, nothing
	Others   bool   // all ids beyond the first maxConversionClients
	// Produced and Fetched are records that were converted when they were written and when they were read, with their bytes as producers sent
	// and consumers got them.
	Produced, ProducedBytes int64
	Fetched, FetchedBytes   int64
	// Version is that of the last request that caused a conversion.
	Version int16
}

func newConversions(logger *slog.Logger) *conversions {
	return &conversions{logger: logger, clients: make(map[string]*conversionCount)}
}

// converting is a request that causes conversions.
type converting struct {
	api      string
	version  int16
	clientID string
	peer     net.Addr
}

func convertingFor(req *wire.Request, api string) converting {
	return converting{api: api, version: req.Version, clientID: req.ClientID, peer: req.Conn.Remote}
}

// produced counts records that a producer's request had converted.
func (c *conversions) produced(by converting, records, bytes int64) {
	n := c.of(by)
	n.produced.Add(records)
	n.producedBytes.Add(bytes)
}

// fetched counts records that a consumer's request had converted.
func (c *conversions) fetched(by converting, records, bytes int64) {
	n := c.of(by)
	n.fetched.Add(records)
	n.fetchedBytes.Add(bytes)
}

func (c *conversions) of(by converting) *conversionCount {
	c.mu.Lock()
	n, known := c.clients[by.clientID]
	switch {
	case known:
	case len(c.clients) >= maxConversionClients:
		n, known = &c.rest, true
	default:
		n = new(conversionCount)
		c.clients[by.clientID] = n
	}
	c.mu.Unlock()
	n.version.Store(int32(by.version))
	if !known {
		c.logger.Info("client causes conversions between message formats", "client_id", by.clientID, "peer", by.peer.String(),
			"api", by.api, "version", by.version)
	}
	return n
}

// snapshot is what was counted so far, by client id, with the rest at the end if there is any.
func (c *conversions) snapshot() []Conversions {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Conversions, 0, len(c.clients)+1)
	for id, n := range c.clients {
		list = append(list, n.snapshot(id))
	}
	slices.SortFunc(list, func(a, b Conversions) int { return cmp.Compare(a.ClientID, b.ClientID) })
	if rest := c.rest.snapshot(""); rest != (Conversions{}) {
		rest.Others = true
		list = append(list, rest)
	}
	return list
}

func (n *conversionCount) snapshot(id string) Conversions {
	return Conversions{ClientID: id, Produced: n.produced.Load(), ProducedBytes: n.producedBytes.Load(),
		Fetched: n.fetched.Load(), FetchedBytes: n.fetchedBytes.Load(), Version: int16(n.version.Load())}
}

// Conversions lists the client ids that caused conversions between message formats since the start, with what they caused: a consumer before
// Fetch version 4, or a producer before Produce version 3, or any whose topic stores an old format (message.format.version). At most 200
// ids are told apart.
func (b *Broker) Conversions() []Conversions { return b.conversions.snapshot() }

// conversions has the records that were converted, by who caused it.
func (s scrape) conversions() {
	for _, c := range s.broker.Conversions() {
		id := c.ClientID
		if c.Others {
			id = "(others)"
		}
		for _, n := range []struct {
			api            string
			records, bytes int64
		}{{"Produce", c.Produced, c.ProducedBytes}, {"Fetch", c.Fetched, c.FetchedBytes}} {
			if n.records > 0 {
				labels := fmt.Sprintf("{client_id=%s,api=%q}", labelText(id), n.api)
				s.counter("converted_records_total"+labels, n.records)
				s.counter("converted_bytes_total"+labels, n.bytes)
			}
		}
	}
}
