package meta

import (
	"errors"
	"os"
)

// reserved is how many bytes of the file have blocks on the disk before they are needed. Topics can be deleted, and a broker started, on a disk that
// is full: changes go to pages that are there. It is enough for a few thousand partitions.
const reserved = 1 << 20

// reserve gives the file at path its reserve. A file that cannot have it, for want of room or because the file system has no such call, works
// as well, but not on a full disk.
func reserve(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < reserved {
		err = allocate(f, reserved)
	}
	return errors.Join(err, f.Close())
}
