package log

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// txnLog makes a log of several segments full of transactions, some of them over more than one segment, and stops it.
func txnLog(t *testing.T, clean bool) (o Options, m *crashModel) {
	t.Helper()
	m = newCrashModel(t, 77)
	m.l.Abandon()
	m.mem = newFS(t)
	m.o.Config = Config{SegmentBytes: 13 << 10, IndexIntervalBytes: 300}
	m.o.FS = m.mem
	m.l = mustOpen(t, m.o)
	for m.l.EndOffset() < 800 {
		m.transact()
	}
	must(t, m.l.Flush())
	m.checkTransactions(m.l)
	if clean {
		must(t, m.l.Close())
	} else {
		m.l.Abandon()
	}
	return reopened(m.o, m.l, clean), m
}

// txnDamage is damage, and what can only happen to a transaction index.
func txnDamage() map[string]func(t *testing.T, f vfs.File, size int64, other []byte) {
	all := map[string]func(t *testing.T, f vfs.File, size int64, other []byte){
		"one entry less": func(t *testing.T, f vfs.File, size int64, _ []byte) { must(t, f.Truncate(size-txnEntrySize)) },
		"half of entries": func(t *testing.T, f vfs.File, size int64, _ []byte) {
			must(t, f.Truncate(size/txnEntrySize/2*txnEntrySize))
		},
		"another producer": func(t *testing.T, f vfs.File, _ int64, _ []byte) {
			_, err := f.WriteAt([]byte{77}, txnFirstPos-1)
			must(t, err)
		},
		"another first offset": func(t *testing.T, f vfs.File, _ int64, _ []byte) {
			_, err := f.WriteAt([]byte{0}, txnLastPos-1)
			must(t, err)
		},
		"first entry lost": func(t *testing.T, f vfs.File, size int64, _ []byte) {
			b := make([]byte, size-txnEntrySize)
			_, err := f.ReadAt(b, txnEntrySize)
			must(t, err)
			must(t, f.Truncate(0))
			overwrite(t, f, b)
		},
	}
	for name, harm := range damage {
		all[name] = harm
	}
	return all
}

// TestTxnIndexIsNotTrusted damages the transaction index of every segment and compares aborted transactions with what was written; then the
// files are as they were.
func TestTxnIndexIsNotTrusted(t *testing.T) {
	damages := txnDamage()
	damages["missing"] = nil
	for _, clean := range []bool{true, false} {
		for name, harm := range damages {
			t.Run(fmt.Sprintf("clean=%v/%s", clean, name), func(t *testing.T) {
				o, m := txnLog(t, clean)
				before := txnFiles(t, o)
				if len(before) < 4 {
					t.Fatalf("only %d transaction indexes", len(before))
				}
				if harm != nil {
					harmFiles(t, o, txnExt, harm)
				} else if removeFiles(t, o, txnExt) != len(before) {
					t.Fatal("not all were there")
				}
				checkTxnHints(t, o, m, before)
			})
		}
	}
}

func checkTxnHints(t *testing.T, o Options, m *crashModel, before map[string][]byte) {
	t.Helper()
	for _, again := range []bool{false, true} {
		lines := &logLines{}
		o.Logger = lines.logger()
		l := mustOpen(t, o)
		for range 6 {
			m.checkTransactions(l)
		}
		if again && lines.has("level=WARN") {
			t.Fatalf("warned again: %s", lines.buf.String())
		}
		if !again && !lines.has("transaction index of a segment") {
			t.Fatal("damage was not noticed")
		}
		must(t, l.Close())
		o = reopened(o, l, true)
	}
	for name, b := range txnFiles(t, o) {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("%s is another one: %d bytes, were %d", name, len(b), len(before[name]))
		}
	}
}

func txnFiles(t *testing.T, o Options) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, name := range fileNames(t, o) {
		if filepath.Ext(name) != txnExt {
			continue
		}
		b, err := vfs.ReadFile(o.FS, filepath.Join(o.Dir, name), 1<<20)
		must(t, err)
		all[name] = b
	}
	return all
}

// FuzzTxnIndex puts any bytes in place of a transaction index: what is answered is what the log says.
func FuzzTxnIndex(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add(appendAborted(nil, AbortedTxn{ProducerID: 10, FirstOffset: 1, LastOffset: 5, LastStableOffset: 6}), false)
	f.Add(bytes.Repeat([]byte{0xff}, 3*txnEntrySize), true)
	f.Add(make([]byte, 5*txnEntrySize), false)
	f.Fuzz(func(t *testing.T, content []byte, clean bool) {
		m := newCrashModel(t, 3)
		m.o.FS = m.mem
		m.l.Abandon()
		m.o.Config = Config{SegmentBytes: 4 << 10, IndexIntervalBytes: 300}
		m.l = mustOpen(t, m.o)
		for m.l.EndOffset() < 100 {
			m.transact()
		}
		must(t, m.l.Flush())
		if clean {
			must(t, m.l.Close())
		} else {
			m.l.Abandon()
		}
		o := reopened(m.o, m.l, clean)
		for name := range txnFiles(t, o) {
			f, err := o.FS.Open(filepath.Join(o.Dir, name))
			must(t, err)
			must(t, f.Truncate(0))
			overwrite(t, f, content)
			must(t, f.Close())
		}
		l := mustOpen(t, o)
		m.checkTransactions(l)
		must(t, l.Close())
	})
}

// FuzzDecodeAborted: what is taken is written the same again.
func FuzzDecodeAborted(f *testing.F) {
	f.Add(appendAborted(nil, AbortedTxn{ProducerID: 10, FirstOffset: 1, LastOffset: 5, LastStableOffset: 6}))
	f.Add([]byte{0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAborted(b)
		if err == nil && !bytes.Equal(appendAborted(nil, a), b[:txnEntrySize]) {
			t.Fatalf("%x becomes %+v", b, a)
		}
	})
}

// TestTxnIndexAfterCrash: recovery leaves transaction indexes as they were, or makes them anew for what lies above the recovery point, although
// nobody reads.
func TestTxnIndexAfterCrash(t *testing.T) {
	for _, lost := range []bool{false, true} {
		o, _ := txnLog(t, false)
		o.RecoveryPoint = 0
		before := txnFiles(t, o)
		if lost {
			removeFiles(t, o, txnExt)
			for name := range before { // one of them is there, but empty
				f, err := o.FS.Create(filepath.Join(o.Dir, name))
				must(t, err)
				must(t, f.Close())
				break
			}
		}
		l := mustOpen(t, o)
		must(t, l.Close())
		after := txnFiles(t, o)
		if len(after) != len(before) {
			t.Errorf("lost %v: %d files, were %d", lost, len(after), len(before))
		}
		for name, b := range after {
			if !bytes.Equal(b, before[name]) {
				t.Errorf("lost %v: %s has %d bytes, had %d", lost, name, len(b), len(before[name]))
			}
		}
	}
}

// TestNoTransactionsNoReads: in a log without transactions nothing is read to find that none was aborted.
func TestNoTransactionsNoReads(t *testing.T) {
	for _, clean := range []bool{true, false} {
		o, _ := hintLog(t, clean)
		seam := faultfs.New(o.FS)
		o.FS = seam
		l := mustOpen(t, o)
		reads := 0
		seam.Observe(func(op faultfs.Op) {
			if op.Kind == faultfs.Read {
				reads++
			}
		})
		got, err := l.AbortedIn(0, l.EndOffset())
		must(t, err)
		if len(got) > 0 || reads > 0 || len(*l.list.Load()) < 3 {
			t.Errorf("clean %v: aborted %v, %d reads, %d segments", clean, got, reads, len(*l.list.Load()))
		}
		must(t, l.Close())
	}
}
