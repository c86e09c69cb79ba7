package wire

import "encoding/binary"

// checkProduce walks a Produce body (ProduceRequest.json) over its lengths without keeping anything, and bounds how many topics and
// partitions it names: the decoder allocates for each of them, and a large frame of empty ones would cost gigabytes.
func checkProduce(b []byte, version int16) error {
	w := walker{b: b, flexible: version >= 9}
	if version >= 3 {
		w.str() // transactional id
	}
	w.skip(2 + 4) // acks, timeout
	parts := 0
	for topics := w.array(); topics > 0 && !w.bad; topics-- {
		if version >= 13 {
			w.skip(16) // topic id
		} else {
			w.str()
		}
		partitions := w.array()
		if parts += 1 + max(partitions, 0); parts > maxProduceParts {
			return errTooMany
		}
		for ; partitions > 0 && !w.bad; partitions-- {
			w.skip(4)
			w.records()
			w.tags()
		}
		w.tags()
	}
	w.tags()
	if w.bad {
		return errNotEnough
	}
	return nil
}

// walker steps over fields. Once bad it stays so.
type walker struct {
	b        []byte
	flexible bool
	bad      bool
}

func (w *walker) skip(n int) {
	if n < 0 || n > len(w.b) {
		w.bad, w.b = true, nil
		return
	}
	w.b = w.b[n:]
}

// compact reads a compact length, which is one more than it says; 0, null, gives -1.
func (w *walker) compact() int {
	v, rest, ok := uvarint(w.b)
	if !ok {
		w.bad, w.b = true, nil
		return 0
	}
	w.b = rest
	return int(v) - 1
}

func (w *walker) int32() int {
	if len(w.b) < 4 {
		w.bad, w.b = true, nil
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(w.b)))
	w.b = w.b[4:]
	return n
}

func (w *walker) array() int {
	if w.flexible {
		return w.compact()
	}
	return w.int32()
}

func (w *walker) records() { w.skip(max(w.array(), 0)) }

func (w *walker) str() {
	if w.flexible {
		w.skip(max(w.compact(), 0))
		return
	}
	if len(w.b) < 2 {
		w.skip(2)
		return
	}
	n := int(int16(binary.BigEndian.Uint16(w.b)))
	w.skip(2)
	w.skip(max(n, 0))
}

func (w *walker) tags() {
	if !w.flexible || w.bad {
		return
	}
	rest, err := skipTags(w.b)
	if err != nil {
		w.bad, w.b = true, nil
		return
	}
	w.b = rest
}
