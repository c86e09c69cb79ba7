package adopt

import (
	"fmt"
	"math"
	"strings"
)

// Producer ids are handed out in blocks of a thousand. With ZooKeeper the last block is not in the directories: every broker may have one beyond the
// ids that were written with, so far more than any cluster has are left out. There are 63 bits of them.
const (
	producerBlock   = 1000
	producerReserve = 1000 * producerBlock
)

// finish decides what follows from all that was read.
func (in *inspection) finish() error {
	p := in.plan
	if len(p.Topics) == 0 && in.image == nil {
		p.block("there is no partition in " + strings.Join(in.Dirs, ", ") + "; name Kafka's log.dirs")
	}
	if in.maxID > math.MaxInt64-2*producerReserve {
		p.block(fmt.Sprintf("producer id %d was found: there are none beyond it", in.maxID))
		return nil
	}
	next := (in.maxID/producerBlock + 1) * producerBlock
	if in.maxID < 0 {
		next = 0
	}
	if in.image != nil {
		p.NextProducerID = max(next, in.image.NextProducerID)
	} else {
		p.NextProducerID = next + producerReserve
	}
	old := 0
	for _, t := range p.Topics {
		for _, part := range t.Partitions {
			if part.Formats[0]+part.Formats[1] > 0 {
				old++
				break
			}
		}
	}
	if old > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d topics have segments of message format 0 or 1: they are served as they are; new records are stored in format 2 unless message.format.version says otherwise", old))
	}
	if p.Groups.Newer > 0 {
		p.Lost = append(p.Lost, fmt.Sprintf("members and assignments of the group protocols of KIP-848 and later (%d records): they stay in __consumer_offsets; committed offsets are carried", p.Groups.Newer))
	}
	if p.Transactions.Open > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d transactions were not ended when Kafka stopped", p.Transactions.Open))
	}
	return nil
}
