package raw

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const produceTimeoutMilli = 30_000

// ProduceRequest is one encoded Produce v7 request, acks=all, that puts batch into each of the partitions.
func ProduceRequest(topic string, partitions []int32, batch []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(7)
	req.Acks, req.TimeoutMillis = -1, produceTimeoutMilli
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for _, n := range partitions {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = n, batch
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return Encode(req, 1)
}

// CheckProduce checks the answer to a ProduceRequest with the given number of partitions: all without error. It
// allocates nothing when that is so.
func CheckProduce(frame []byte, partitions int) error {
	// correlation id, topics, name, partitions, {index, error, base offset, append time, log start offset}, throttle
	const perPartition = 4 + 2 + 8 + 8 + 8
	be := binary.BigEndian
	if len(frame) < 10 || be.Uint32(frame) != 1 || be.Uint32(frame[4:]) != 1 {
		return fmt.Errorf("%w to Produce: %d bytes", ErrFrame, len(frame))
	}
	at := 10 + int(be.Uint16(frame[8:]))
	if len(frame) != at+4+partitions*perPartition+4 || int(be.Uint32(frame[at:])) != partitions {
		return fmt.Errorf("%w to Produce with %d partitions: %d bytes", ErrFrame, partitions, len(frame))
	}
	for p := frame[at+4:]; len(p) > 4; p = p[perPartition:] {
		if code := int16(be.Uint16(p[4:])); code != 0 {
			return fmt.Errorf("Produce to partition %d: error code %d", int32(be.Uint32(p)), code)
		}
	}
	return nil
}
