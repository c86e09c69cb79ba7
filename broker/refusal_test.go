package broker

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/meta"
)

func TestErrorsOfAdminRequests(t *testing.T) {
	refused := refuse(kerr.InvalidConfig, "key %s", "x")
	for _, tt := range []struct {
		err  error
		code int16
		text string
	}{
		{nil, 0, "<null>"},
		{refused, kerr.InvalidConfig.Code, "key x"},
		{fmt.Errorf("around: %w", refused), kerr.InvalidConfig.Code, "key x"},
		{kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicOrPartition.Description},
		{fmt.Errorf("creating: %w", meta.ErrFailed), kerr.KafkaStorageError.Code, "creating: " + meta.ErrFailed.Error()},
		{fmt.Errorf("creating: %w", syscall.ENOSPC), kerr.KafkaStorageError.Code, "creating: " + syscall.ENOSPC.Error()},
		{errors.New("strange"), kerr.UnknownServerError.Code, "strange"},
	} {
		if got, shown := code(tt.err), text(errorText(tt.err)); got != tt.code || shown != tt.text {
			t.Errorf("%v: code %d %q, want %d %q", tt.err, got, shown, tt.code, tt.text)
		}
	}
}
