package batch

import (
	"fmt"
	"io"
)

// Inflate decompresses body, which is no part of a batch, as a whole. More than limit bytes are ErrTooLarge, and not more than that is ever held. Damage is ErrInvalid, a
// codec that does not exist ErrCodec. Without compression body itself is returned.
func Inflate(codec Codec, body []byte, limit int) ([]byte, error) {
	if codec == None && len(body) <= limit {
		return body, nil
	}
	var f inflater
	r, err := f.open(codec, body, 2)
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, damaged(err)
	}
	if len(out) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes when decompressed", ErrTooLarge, limit)
	}
	return out, nil
}
