package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gregor/log/vfs"
)

// leftovers are what a clean left that a crash ended, by the base offsets of their segments.
type leftovers struct {
	swaps   map[int64][]string // extensions of the files with .swap
	cleaned int64              // the least base of a file with .cleaned, math.MaxInt64 if there is none
}

// endSwaps ends or takes back the compactions that an earlier process did not end. It does what Apache Kafka's start does with its own, so that the
// directory may come from either. While a .cleaned file is there whose base is not above a swap's, not all files have got their .swap and nothing was
// replaced: the swap is taken back. Else it is ended: the segments that it replaces go, and it gets their name. It reports whether files changed.
func (l *Log) endSwaps(entries []fs.DirEntry) (bool, error) {
	left := leftovers{swaps: make(map[int64][]string), cleaned: math.MaxInt64}
	for _, e := range entries {
		name, swap := strings.CutSuffix(e.Name(), swapExt)
		name, cleaned := strings.CutSuffix(name, cleanedExt)
		base, ext, ok := parseFileName(name)
		switch {
		case !ok:
		case cleaned:
			left.cleaned = min(left.cleaned, base)
		case swap:
			left.swaps[base] = append(left.swaps[base], ext)
		}
	}
	if len(left.swaps) == 0 {
		return false, nil
	}
	for base, exts := range left.swaps {
		var err error
		if base >= left.cleaned {
			err = l.takeBackSwap(base, exts)
		} else {
			err = l.endSwap(base, exts, entries)
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// takeBackSwap removes the files of a swap that did not begin. The .cleaned file that says so goes after it, when all of it is durably gone.
func (l *Log) takeBackSwap(base int64, exts []string) error {
	l.logger.Info("removing the output of a compaction that did not end", "dir", l.Dir(), "segment", base)
	for _, ext := range exts {
		if err := l.fs.Remove(filepath.Join(l.Dir(), fileName(base, ext)+swapExt)); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.Dir())
}

// endSwap gives a compacted segment its name. If its .log has it already, the others follow.
func (l *Log) endSwap(base int64, exts []string, entries []fs.DirEntry) error {
	l.logger.Info("ending a compaction that was swapping its output in", "dir", l.Dir(), "segment", base)
	if slices.Contains(exts, logExt) {
		end, err := l.swapEnd(base)
		if err != nil {
			return err
		}
		if err := l.removeReplaced(base, end, entries); err != nil {
			return err
		}
	}
	if err := l.renameSwapped(base, exts); err != nil {
		return fmt.Errorf("ending a compaction: %w", err)
	}
	return l.fs.SyncDir(l.Dir())
}

// renameSwapped takes .swap off the files that have it, of the .log first.
func (l *Log) renameSwapped(base int64, exts []string) error {
	for _, ext := range segmentExts() {
		if !slices.Contains(exts, ext) {
			continue
		}
		path := filepath.Join(l.Dir(), fileName(base, ext))
		if err := l.fs.Rename(path+swapExt, path); err != nil {
			return err
		}
	}
	return nil
}

// removeReplaced removes the files of the segments that a compacted one with the offsets [base, end) stands for, its own base's too.
func (l *Log) removeReplaced(base, end int64, entries []fs.DirEntry) error {
	for _, e := range entries {
		offset, ext, ok := parseFileName(e.Name())
		inside := offset >= base && offset < max(end, base+1)
		replaced := slices.Contains([]string{logExt, indexExt, timeExt, txnExt}, ext) || ext == snapshotExt && offset > base
		if !ok || !inside || !replaced {
			continue
		}
		if err := l.fs.Remove(filepath.Join(l.Dir(), e.Name())); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.Dir())
}

// swapEnd is the offset after the last entry of a .log with .swap, which was durable before it got the suffix.
func (l *Log) swapEnd(base int64) (int64, error) {
	path := filepath.Join(l.Dir(), fileName(base, logExt)+swapExt)
	f, err := l.fs.OpenRead(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	end, err := lastOffset(f, size, base)
	if err != nil {
		var failed *CorruptError
		if errors.As(err, &failed) {
			failed.File = path
		}
		return 0, err
	}
	return end, nil
}

func lastOffset(f vfs.File, size, base int64) (int64, error) {
	end := base
	scan := scanner{file: f, end: size, buf: make([]byte, chunkBytes)}
	for {
		err := scan.next()
		switch {
		case err == io.EOF:
			return end, nil
		case isDamage(err):
			return 0, &CorruptError{Pos: scan.pos, Err: err}
		case err != nil:
			return 0, err
		}
		end = max(end, scan.entry.LastOffset+1)
	}
}
