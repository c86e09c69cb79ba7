package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// How much of a segment is read at once, in bytes: all of it, or headers alone.
const (
	surveyChunk  = 1 << 20
	surveyGlance = 16 << 10
)

// ErrStop ends a SurveySegment early, without an error.
var ErrStop = errors.New("enough was seen")

// SurveySegment calls visit with each entry of a segment's file from pos on, up to size; with verify every checksum is compared. It changes nothing
// and returns the position after the last whole entry. An error that is not visit's says what is wrong with the entry there: a *CorruptError
// for damage or an entry that is cut off, another for a failure of the disk.
func SurveySegment(file io.ReaderAt, name string, pos, size int64, verify bool, visit func(pos int64, e batch.Entry) error) (int64, error) {
	chunk := int64(surveyGlance)
	if verify {
		chunk = surveyChunk
	}
	s := scanner{file: file, pos: pos, end: size, verify: verify, buf: make([]byte, min(chunk, max(size-pos, batch.HeaderSize)))}
	for {
		err := s.next()
		var disk *readError
		switch {
		case err == io.EOF:
			return s.pos, nil
		case errors.As(err, &disk):
			return s.pos, fmt.Errorf("reading %s at %d: %w", name, s.pos, err)
		case err != nil:
			return s.pos, &CorruptError{File: name, Pos: s.pos, Err: err}
		}
		switch err := visit(s.at, s.entry); {
		case errors.Is(err, ErrStop):
			return s.pos, nil
		case err != nil:
			return s.at, err
		}
	}
}

// SurveyEpochs reads the leader-epoch-checkpoint in a log's directory, nil when there is none.
func SurveyEpochs(fsys vfs.FS, dir string) ([]EpochStart, error) {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, epochFile), maxEpochFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeEpochs(b)
}
