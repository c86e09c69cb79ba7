package commit

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"gregor/log/vfs"
)

// BenchmarkDirty is what an append pays.
func BenchmarkDirty(b *testing.B) {
	c := New(&fakeFS{}, "d", nil)
	defer c.Close()
	s := &fakeSource{files: []Syncer{&fakeFile{}}}
	b.ReportAllocs()
	for b.Loop() {
		c.Dirty(s)
	}
}

type fileSource struct {
	file   vfs.File
	offset int64
}

func (s *fileSource) BeginSync() (Target, bool) { return Target{Files: []Syncer{s.file}}, true }

func (s *fileSource) EndSync(Target, error) {}

// BenchmarkRound is one group commit of n files with 1 KiB of new data each, on the disk that holds TMPDIR.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{1, 2, 6, 64, 1000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			fsys := vfs.OS()
			c := New(fsys, dir, nil)
			defer c.Close()
			all := make([]*fileSource, n)
			for i := range all {
				f, err := fsys.Create(filepath.Join(dir, fmt.Sprint(i)))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				all[i] = &fileSource{file: f}
			}
			data := make([]byte, 1024)
			for b.Loop() {
				for _, s := range all {
					if _, err := s.file.WriteAt(data, s.offset); err != nil {
						b.Fatal(err)
					}
					s.offset += int64(len(data))
				}
				for _, s := range all {
					c.Dirty(s)
				}
				if err := c.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			st := c.Stats()
			b.ReportMetric(float64(st.File.Count+st.All.Count)/float64(b.N), "syncs/op")
		})
	}
}
