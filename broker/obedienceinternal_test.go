package broker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestRefusalsAreNotANoise: whoever sends orders that are not carried out does not fill the log.
func TestRefusalsAreNotANoise(t *testing.T) {
	var lines bytes.Buffer
	b := &Broker{logger: slog.New(slog.NewTextHandler(&lines, nil))}
	for range 1000 {
		b.refused("StopReplica", 7, errors.New("order of an older controller"))
	}
	if n := strings.Count(lines.String(), "is not carried out"); n != 1 {
		t.Errorf("%d lines", n)
	}
}
