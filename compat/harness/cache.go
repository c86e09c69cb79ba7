package harness

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CacheDir names the folder that keeps what is fetched or built once (jars, the Python environment, classes, binaries):
// $GREGOR_COMPAT_CACHE, else gregor-compat in the user's cache folder. It exists when CacheDir returns.
func CacheDir() (string, error) {
	dir := os.Getenv("GREGOR_COMPAT_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder: set GREGOR_COMPAT_CACHE: %w", err)
		}
		dir = filepath.Join(base, "gregor-compat")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// Once runs work under a lock that all test processes share, so that what name stands for is fetched or built by one of
// them while the others wait. Work must itself see that its result is there already.
func Once(name string, work func(cache string) error) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(cache, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // closing drops the lock
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return work(cache)
}
