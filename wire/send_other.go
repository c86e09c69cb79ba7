//go:build !linux

package wire

// transfer is not used here.
type transfer struct{}

func (c *conn) sendsFiles() bool { return false }

func (c *conn) sendBurst() error { return c.sendParts(c.copySection) }
