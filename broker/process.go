package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gregor/log/vfs"
)

// ProcessOf is the number of the process whose broker uses a data directory. The error says that there is none, or that it cannot be told.
func ProcessOf(dir string) (int, error) {
	path := filepath.Join(dir, ".lock")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s is not there: %s is not the data directory of a broker", path, dir)
	}
	if err != nil {
		return 0, err
	}
	lock, err := vfs.OS().Lock(path)
	if err == nil {
		return 0, errors.Join(fmt.Errorf("no broker runs on %s", dir), lock.Close())
	}
	if !errors.Is(err, vfs.ErrLocked) {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("%s does not say which process uses %s; is it a broker of another kind?", path, dir)
	}
	return pid, nil
}
