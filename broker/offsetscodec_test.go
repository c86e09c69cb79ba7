package broker

import (
	"os"
	"path/filepath"
	"testing"

	"gregor/log/batch"
)

// TestOffsetsCodec: offsets.topic.compression.codec compresses what is stored of groups, and it is read again.
func TestOffsetsCodec(t *testing.T) {
	for _, tc := range []struct {
		number string
		codec  batch.Codec
	}{{"0", batch.None}, {"1", batch.Gzip}, {"2", batch.Snappy}, {"3", batch.LZ4}, {"4", batch.Zstd}} {
		dir := t.TempDir()
		settings := []string{"offsets.topic.compression.codec", tc.number, "offsets.topic.num.partitions", "1"}
		b, c := groupBroker(t, dir, settings...)
		c.createTopic("t")
		c.commitOne("g", "t", 42)
		b.abandon()
		text, err := os.ReadFile(filepath.Join(dir, offsetsTopic+"-0", "00000000000000000000.log"))
		if err != nil {
			t.Fatal(err)
		}
		h, err := batch.ReadHeader(text)
		if err != nil || h.Codec() != tc.codec {
			t.Errorf("codec %s: stored with %v: %v", tc.number, h.Codec(), err)
		}
		b, c = groupBroker(t, dir, settings...)
		waitFor(t, func() bool { return loaded(b) })
		if got := c.fetchOne("g", "t").Offset; got != 42 {
			t.Errorf("codec %s: offset is %d", tc.number, got)
		}
		b.abandon()
	}
}
