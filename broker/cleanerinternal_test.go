package broker

import "testing"

// TestCleanerInternalTopics: groups, their offsets and transactional ids are the same after their topics were compacted and the broker came back: one that
// stopped, and one that was killed.
func TestCleanerInternalTopics(t *testing.T) {
	dir := t.TempDir()
	settings := []string{"offsets.topic.segment.bytes", "600", "transaction.state.log.segment.bytes", "600", "log.cleaner.min.cleanable.ratio", "0",
		"log.cleaner.backoff.ms", "5", "log.segment.delete.delay.ms", "0"}
	b, c := txnBroker(t, dir, settings...)
	c.createTopic("a")
	p := c.initTxn("t", false)
	for i := range int64(30) {
		for _, group := range []string{"plain", "other"} {
			if code := c.commitOne(group, "a", i); code != 0 {
				t.Fatalf("commit: error %d", code)
			}
		}
		if code := p.addOffsets("atomic"); code != 0 {
			t.Fatalf("adding offsets: error %d", code)
		}
		if code := p.commitOffset(3, "atomic", "a", i); code != 0 {
			t.Fatalf("commit in a transaction: error %d", code)
		}
		if code := p.end(i%3 != 2); code != 0 { // the last is aborted
			t.Fatalf("end: error %d", code)
		}
	}
	s := awaitCleaner(b, c, func(s CleanerStats) bool { return s.RecordsRemoved > 150 })
	if s.Failures != 0 {
		t.Errorf("counters %+v", s)
	}
	for round := range 2 {
		if round == 0 {
			b.stopClean()
		} else {
			b.abandon()
		}
		b, c = txnBroker(t, dir, settings...)
		for group, want := range map[string]int64{"plain": 29, "other": 29, "atomic": 28} {
			waitFor(t, func() bool { return c.fetchOne(group, "a").ErrorCode == 0 })
			if got := c.fetchOne(group, "a"); got.Offset != want {
				t.Errorf("round %d: offset of group %s is %d, want %d", round, group, got.Offset, want)
			}
		}
		again := c.initTxn("t", false)
		if again.who.ID != p.who.ID || again.who.Epoch <= p.who.Epoch {
			t.Errorf("round %d: the transactional id has %+v after %+v", round, again.who, p.who)
		}
		p = again
	}
}
