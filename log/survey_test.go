package log

import (
	"bytes"
	"errors"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
)

func TestSurveySegment(t *testing.T) {
	var b batch.Builder
	var file []byte
	for i := range 300 { // more than is read at once
		b.Reset(batch.Options{BaseOffset: int64(i), LeaderEpoch: 3})
		b.Append(5, nil, bytes.Repeat([]byte{byte(i)}, 5000))
		var err error
		if file, err = b.Finish(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, verify := range []bool{false, true} {
		next := int64(0)
		end, err := SurveySegment(bytes.NewReader(file), "f", 0, int64(len(file)), verify, func(pos int64, e batch.Entry) error {
			if e.BaseOffset != next || e.LeaderEpoch != 3 || pos != next*int64(e.Size) {
				t.Fatalf("entry %+v at %d", e, pos)
			}
			next++
			return nil
		})
		if err != nil || end != int64(len(file)) || next != 300 {
			t.Errorf("verify %v: %d entries, end %d, %v", verify, next, end, err)
		}
	}
	stopped := 0
	if _, err := SurveySegment(bytes.NewReader(file), "f", 0, int64(len(file)), false, func(int64, batch.Entry) error { stopped++; return ErrStop }); err != nil || stopped != 1 {
		t.Errorf("%d entries, %v", stopped, err)
	}
	var corrupt *CorruptError
	size := len(file) / 300
	if end, err := SurveySegment(bytes.NewReader(file[:len(file)-1]), "f", 0, int64(len(file)-1), false, func(int64, batch.Entry) error { return nil }); !errors.As(err, &corrupt) || end != int64(299*size) {
		t.Errorf("cut off: end %d, %v", end, err)
	}
	file[10*size+100] ^= 1
	if end, err := SurveySegment(bytes.NewReader(file), "f", 0, int64(len(file)), true, func(int64, batch.Entry) error { return nil }); !errors.As(err, &corrupt) || end != int64(10*size) {
		t.Errorf("damage: end %d, %v", end, err)
	}
	if _, err := SurveySegment(bytes.NewReader(file), "f", 0, int64(len(file)+1), false, func(int64, batch.Entry) error { return nil }); errors.As(err, &corrupt) || err == nil {
		t.Errorf("a file that is shorter than was said: %v", err)
	}
	if end, err := SurveySegment(bytes.NewReader(nil), "f", 0, 0, true, nil); err != nil || end != 0 {
		t.Errorf("empty: %d, %v", end, err)
	}
}

func TestSurveyEpochs(t *testing.T) {
	mem := crashfs.New()
	if err := mem.MkdirAll("/t-0"); err != nil {
		t.Fatal(err)
	}
	if list, err := SurveyEpochs(mem, "/t-0"); err != nil || list != nil {
		t.Errorf("%v %v", list, err)
	}
	f, err := mem.Create("/t-0/" + epochFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("0\n1\n4 9\n"), 0); err != nil {
		t.Fatal(err)
	}
	if list, err := SurveyEpochs(mem, "/t-0"); err != nil || len(list) != 1 || list[0] != (EpochStart{4, 9}) {
		t.Errorf("%v %v", list, err)
	}
}
