package logdir

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

func TestParseCheckpoint(t *testing.T) {
	cases := []struct {
		name, text string
		want       offsets // nil: invalid
	}{
		{"empty", "0\n0\n", offsets{}},
		{"two", "0\n2\na 0 5\nb-c 12 9223372036854775807\n", offsets{{"a", 0}: 5, {"b-c", 12}: 9223372036854775807}},
		{"no last newline", "0\n1\na 0 5", offsets{{"a", 0}: 5}},
		{"windows lines", "0\r\n1\r\na 0 5\r\n", offsets{{"a", 0}: 5}},
		{"nothing", "", nil},
		{"zeros", strings.Repeat("\x00", 100), nil},
		{"another version", "1\n0\n", nil},
		{"count is no number", "0\nx\n", nil},
		{"negative count", "0\n-1\n", nil},
		{"huge count", "0\n2147483647\na 0 5\n", nil},
		{"cut off", "0\n2\na 0 5\n", nil},
		{"cut in a line", "0\n2\na 0 5\nb 1", nil},
		{"too many", "0\n1\na 0 5\nb 0 5\n", nil},
		{"twice", "0\n2\na 0 5\na 0 6\n", nil},
		{"negative offset", "0\n1\na 0 -1\n", nil},
		{"negative partition", "0\n1\na -1 1\n", nil},
		{"four fields", "0\n1\na 0 5 6\n", nil},
		{"offset too large", "0\n1\na 0 9223372036854775808\n", nil},
		{"zeros at the end", "0\n1\na 0 5\n\x00\x00", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseCheckpoint([]byte(c.text))
			if c.want == nil {
				wantIs(t, err, errCheckpoint)
				return
			}
			must(t, err)
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	for _, s := range []string{"0\n0\n", "0\n2\na 0 5\nb-c 12 7\n", "0\n1\na 0", "\x00\x00", "0\n99\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseCheckpoint(b)
		if err != nil {
			return
		}
		again, err := parseCheckpoint(got.format())
		if err != nil || !maps.Equal(got, again) {
			t.Errorf("%v was written and read as %v, %v", got, again, err)
		}
	})
}

func TestCheckpointFormat(t *testing.T) {
	got := string(offsets{{"b", 2}: 3, {"b", 10}: 4, {"a", 0}: 0}.format())
	if want := "0\n3\na 0 0\nb 2 3\nb 10 4\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTopicIDFormat(t *testing.T) {
	id := [16]byte{0xfb, 0xff, 1, 2, 3}
	text := string(formatTopicID(id))
	if want := "version: 0\ntopic_id: -_8BAgMAAAAAAAAAAAAAAA"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	for _, valid := range []string{text, text + "\n", strings.ReplaceAll(text, "\n", "\r\n"), "version:0\ntopic_id:-_8BAgMAAAAAAAAAAAAAAA"} {
		if got, err := parseTopicID([]byte(valid)); err != nil || got != id {
			t.Errorf("%q: %v, %v", valid, got, err)
		}
	}
	for _, bad := range []string{"", "\x00\x00", text[:len(text)-1], text + "x", "version: 1\n" + text[11:], text + "\n" + text, "topic_id: x\nversion: 0"} {
		if _, err := parseTopicID([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzParseTopicID(f *testing.F) {
	f.Add(formatTopicID([16]byte{1}))
	f.Add([]byte("version: 0\ntopic_id: "))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := parseTopicID(b)
		if err != nil {
			return
		}
		if again, err := parseTopicID(formatTopicID(id)); err != nil || again != id {
			t.Errorf("%v was written and read as %v, %v", id, again, err)
		}
	})
}

// TestReplaceFileAtEveryCut: whatever is lost, the old content or the new is there.
func TestReplaceFileAtEveryCut(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	writeFile(t, fsys, "/d/f", "old")
	writeFile(t, fsys, "/d/f.tmp", "of a crash")
	must(t, fsys.SyncAll("/d"))
	cuts := cutAtEveryChange(fsys, disk, 20)
	must(t, replaceFile(fsys, "/d", "f", []byte("newer")))
	must(t, fsys.SyncDir("/d"))
	fsys.Observe(nil)
	var old, newer int
	for _, c := range cuts.disks {
		switch got := readFile(t, c, "/d/f"); got {
		case "old":
			old++
		case "newer":
			newer++
		default:
			t.Fatalf("after a cut the file holds %q", got)
		}
	}
	if old == 0 || newer == 0 {
		t.Errorf("old %d times, new %d times: the cuts did not reach both", old, newer)
	}
	if got := readFile(t, disk.CrashClone(cuts.rng, crashfs.LoseAll()), "/d/f"); got != "newer" {
		t.Errorf("after the directory was synced the file holds %q", got)
	}
}

func TestCheckpointsThatCannotBeWrittenStayOld(t *testing.T) {
	fsys := faultfs.New(crashfs.New())
	d := mustOpen(t, fakeOptions(fsys))
	mustCreate(t, d, spec("a", 0))
	must(t, d.Checkpoint())
	path := filepath.Join(testDir, checkpointNames()[recoveryPoints])
	fake(t, d, "a", 0).append(t)
	must(t, d.ownCommit.Flush(t.Context()))
	remove := fsys.Add(faultfs.Rule{Kind: faultfs.Write, Path: "recovery-point", Err: syscall.ENOSPC, Short: 3})
	wantIs(t, d.Checkpoint(), syscall.ENOSPC)
	if got := readFile(t, fsys, path); got != "0\n1\na 0 0\n" {
		t.Errorf("the checkpoint is %q, want the old one", got)
	}
	if got := readFile(t, fsys, filepath.Join(testDir, checkpointNames()[highWatermarks])); got != "0\n1\na 0 1\n" {
		t.Errorf("the other checkpoint is %q, want the new one", got)
	}
	remove()
	must(t, d.Checkpoint())
	if got := readFile(t, fsys, path); got != "0\n1\na 0 1\n" {
		t.Errorf("the checkpoint is %q, want the new one", got)
	}
	must(t, d.Close())
}

// TestFailedSyncIsNotForgotten: a checkpoint whose directory could not be synced is written again, also when nothing changed since.
func TestFailedSyncIsNotForgotten(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	d := mustOpen(t, serial(fsys))
	mustCreate(t, d, spec("a", 0))
	defer d.Abandon()
	l := fake(t, d, "a", 0)
	l.mu.Lock()
	l.start = 7
	l.mu.Unlock()
	remove := fsys.Add(faultfs.Rule{Kind: faultfs.SyncDir, Err: syscall.EIO})
	if err := d.CheckpointStarts(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("no sync: %v", err)
	}
	remove()
	must(t, d.CheckpointStarts())
	cut := reopen(t, disk.CrashClone(rand.New(rand.NewPCG(1, 2)), crashfs.LoseAll()))
	defer cut.Abandon()
	if got := fake(t, cut, "a", 0).opts.LogStart; got != 7 {
		t.Fatalf("after a power cut the log starts at %d", got)
	}
}

// TestEmptyCleanerCheckpoint: Kafka makes the cleaner's file empty and fills it after the first compaction, so empty is nothing to warn of. Another
// that is empty was cut short.
func TestEmptyCleanerCheckpoint(t *testing.T) {
	fsys := crashfs.New()
	must(t, fsys.MkdirAll(testDir))
	for _, name := range checkpointNames() {
		writeFile(t, fsys, filepath.Join(testDir, name), "")
	}
	var reported []string
	_, err := readCheckpoints(fsys, testDir, func(file string, _ error) { reported = append(reported, filepath.Base(file)) })
	must(t, err)
	names := checkpointNames()
	if want := []string{names[recoveryPoints], names[highWatermarks], names[logStarts]}; !slices.Equal(slices.Sorted(slices.Values(reported)), slices.Sorted(slices.Values(want))) {
		t.Errorf("reported are %v, want %v", reported, want)
	}
}

// TestAdviceOnce: what was advised where the error came from is not said again.
func TestAdviceOnce(t *testing.T) {
	once := advise(fmt.Errorf("locking: %w", syscall.EACCES))
	if twice := advise(once); twice.Error() != once.Error() || !errors.Is(twice, syscall.EACCES) {
		t.Errorf("advised twice: %v", twice)
	}
}
