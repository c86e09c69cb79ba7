//go:build !linux && !darwin && !freebsd

package vfs

func usage(string) (Usage, error) { return Usage{}, ErrUnsupported }
