package logdir

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gregor/log/vfs"
)

const (
	metaFile    = "meta.properties"
	maxMetaSize = 64 << 10
)

// ErrIdentity is a directory that belongs to another broker or cluster.
var ErrIdentity = errors.New("log directory belongs to another broker or cluster")

// identity is the content of meta.properties: version 0 (broker.id) as Kafka with ZooKeeper writes it, version 1 (node.id) as
// Kafka with KRaft does.
type identity struct {
	BrokerID  int32 // -1: none
	ClusterID string
}

// javaDate is the form of the date that Java's Properties.store writes.
const javaDate = "Mon Jan 02 15:04:05 UTC 2006"

// parseMeta reads who a directory belongs to.
func parseMeta(b []byte) (identity, error) {
	id, err := parseIdentity(b)
	if err != nil {
		return identity{}, err
	}
	return identity{BrokerID: id.BrokerID, ClusterID: id.ClusterID}, nil
}

// parseIdentity reads a file in the format of Java properties.
func parseIdentity(b []byte) (Identity, error) {
	props := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		i := strings.IndexAny(line, "=:")
		if i < 0 {
			return Identity{}, fmt.Errorf("line %q is not key=value", line)
		}
		props[strings.TrimSpace(line[:i])] = strings.ReplaceAll(strings.TrimSpace(line[i+1:]), `\`, "")
	}
	id := Identity{BrokerID: -1, ClusterID: props["cluster.id"]}
	idKey := "broker.id"
	switch v := props["version"]; v {
	case "0":
	case "1":
		idKey, id.Version, id.DirectoryID = "node.id", 1, props["directory.id"]
	default:
		return Identity{}, fmt.Errorf("version is %q, known are 0 and 1", v)
	}
	if v, ok := props[idKey]; ok {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			return Identity{}, fmt.Errorf("%s is %q, not a broker id", idKey, v)
		}
		id.BrokerID = int32(n)
	}
	return id, nil
}

// format writes version 0, with the date that Java's Properties.store puts there.
func (id identity) format(now time.Time) []byte {
	return fmt.Appendf(nil, "#\n#%s\ncluster.id=%s\nversion=0\nbroker.id=%d\n",
		now.UTC().Format(javaDate), id.ClusterID, id.BrokerID)
}

// newClusterID returns 16 random bytes as Kafka writes ids, never with a leading hyphen, which tools take for an option.
func newClusterID() string {
	for {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		if s := base64.RawURLEncoding.EncodeToString(b[:]); s[0] != '-' {
			return s
		}
	}
}

// identify compares the directory's identity with what is wanted. changed says that the file is to be written.
func identify(fsys vfs.FS, dir string, want identity) (id identity, changed bool, err error) {
	name := filepath.Join(dir, metaFile)
	b, ok, err := readIfThere(fsys, name, maxMetaSize)
	if err != nil {
		return identity{}, false, fmt.Errorf("reading the identity of the log directory: %w", err)
	}
	have := identity{BrokerID: -1}
	if ok {
		if have, err = parseMeta(b); err != nil {
			return identity{}, false, fmt.Errorf("%s is not valid: %w; restore it, or remove it to have it written anew", name, err)
		}
	}
	switch {
	case want.BrokerID >= 0 && have.BrokerID >= 0 && want.BrokerID != have.BrokerID:
		return identity{}, false, fmt.Errorf("%w: %s says broker %d, configured is broker.id=%d; set broker.id=%d, or use another directory",
			ErrIdentity, name, have.BrokerID, want.BrokerID, have.BrokerID)
	case want.ClusterID != "" && have.ClusterID != "" && want.ClusterID != have.ClusterID:
		return identity{}, false, fmt.Errorf("%w: %s says cluster %s, this is cluster %s; use another directory, or remove the file if the data is to join this cluster",
			ErrIdentity, name, have.ClusterID, want.ClusterID)
	}
	id = have
	if id.BrokerID < 0 {
		id.BrokerID = max(want.BrokerID, 0)
	}
	if id.ClusterID == "" {
		id.ClusterID = want.ClusterID
	}
	if id.ClusterID == "" {
		id.ClusterID = newClusterID()
	}
	return id, id != have, nil
}
