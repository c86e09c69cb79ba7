package zk

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Options say which ZooKeeper, and how.
type Options struct {
	// Connect is zookeeper.connect: host:port,host:port/chroot. A chroot that does not exist is made.
	Connect string
	// SessionTimeout is zookeeper.session.timeout.ms: after so long without a connection the session, and with it all ephemeral nodes, ends.
	SessionTimeout time.Duration
	// ConnectTimeout is zookeeper.connection.timeout.ms: how long Open waits for ZooKeeper.
	ConnectTimeout time.Duration
	// SetACL is zookeeper.set.acl: nodes that are made can be changed by who made them only, and those with secrets also read.
	SetACL bool
	// TLS is nil for a connection without. The server's name is filled in.
	TLS *tls.Config
	// Digest is user:password for ZooKeeper's digest authentication; empty is none.
	Digest string
	Logger *slog.Logger // nil: discard
}

// target is Connect taken apart.
type target struct {
	servers []string
	chroot  string // "" or "/path"
}

func parseConnect(text string) (target, error) {
	hosts, chroot, _ := strings.Cut(text, "/")
	var t target
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host != "" {
			t.servers = append(t.servers, host)
		}
	}
	if len(t.servers) == 0 {
		return t, fmt.Errorf("zookeeper.connect %q names no server; it is host:port,host:port/path", text)
	}
	if chroot = strings.Trim(chroot, "/"); chroot != "" {
		if strings.Contains(chroot, "//") {
			return t, fmt.Errorf("zookeeper.connect %q has an empty name in its path", text)
		}
		t.chroot = "/" + chroot
	}
	return t, nil
}

// acl is what a node is made with: Kafka's ZkData.defaultAcls. What is below /config/users, /config/brokers and /delegation_token may have secrets in it;
// consumers of Kafka 0.8 make their nodes below /consumers themselves.
func (o *Options) acl(path string) []zk.ACL {
	if !o.SetACL || path == "/consumers" {
		return zk.WorldACL(zk.PermAll)
	}
	acl := zk.AuthACL(zk.PermAll)
	for _, secret := range [...]string{"/config/users", "/config/brokers", "/delegation_token"} {
		if strings.HasPrefix(path, secret) {
			return acl
		}
	}
	return append(acl, zk.WorldACL(zk.PermRead)...)
}

func (o *Options) check() error {
	if o.SessionTimeout <= 0 || o.ConnectTimeout <= 0 {
		return errors.New("timeouts of ZooKeeper must be positive")
	}
	if o.SetACL && o.Digest == "" && (o.TLS == nil || len(o.TLS.Certificates) == 0) {
		return errors.New("zookeeper.set.acl needs a user: without authentication nobody could change what is made")
	}
	return nil
}

// printer hands the library's lines on.
type printer struct{ logger *slog.Logger }

func (p printer) Printf(format string, args ...any) {
	p.logger.Debug("zookeeper client", "text", fmt.Sprintf(format, args...))
}
