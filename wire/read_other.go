//go:build !linux

package wire

import "net"

// sock has no raw side here.
type sock struct{}

func (c *conn) attach(net.Conn) bool { return false }

func (c *conn) receive(block bool) (int, error) { return c.receivePlain(block) }

func (c *conn) hold() (int, error) { return c.holdPlain() }
