package broker

import (
	"testing"
	"time"
)

// TestRoomAgain: a small append that fits between large ones that do not is not room.
func TestRoomAgain(t *testing.T) {
	var d diskAlarm
	now := time.Unix(1700000000, 0)
	if d.roomAgain(now) {
		t.Error("room again that was never missed")
	}
	d.full.Store(now.UnixNano())
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {roomAfter - 1, false}, {roomAfter, true}, {roomAfter + 1, false}} {
		if got := d.roomAgain(now.Add(c.after)); got != c.want {
			t.Errorf("%v after a failure: %v", c.after, got)
		}
	}
}
