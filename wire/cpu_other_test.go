//go:build !linux

package wire

import "time"

func threadCPU() time.Duration { return 0 }
