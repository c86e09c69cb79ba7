package logdir

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gregor/log/vfs"
)

const (
	topicIDFile    = "partition.metadata"
	maxTopicIDSize = 4 << 10
)

// parseTopicID reads partition.metadata: "version: 0" and "topic_id: " with the id in base64url.
func parseTopicID(b []byte) (id [16]byte, err error) {
	lines := strings.Split(strings.TrimRight(string(b), "\r\n"), "\n")
	if len(lines) != 2 {
		return id, fmt.Errorf("%d lines, want 2", len(lines))
	}
	version, ok1 := strings.CutPrefix(strings.TrimSpace(lines[0]), "version:")
	text, ok2 := strings.CutPrefix(strings.TrimSpace(lines[1]), "topic_id:")
	if !ok1 || !ok2 || strings.TrimSpace(version) != "0" {
		return id, errors.New("not version 0 with a topic_id")
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(id) {
		return id, errors.New("topic_id is not 16 bytes in base64url")
	}
	copy(id[:], raw)
	return id, nil
}

func formatTopicID(id [16]byte) []byte {
	return []byte("version: 0\ntopic_id: " + base64.RawURLEncoding.EncodeToString(id[:]))
}

// readTopicID returns the topic id of a partition's directory, zeros if there is none.
func readTopicID(fsys vfs.FS, dir string) (id [16]byte, err error) {
	b, ok, err := readIfThere(fsys, filepath.Join(dir, topicIDFile), maxTopicIDSize)
	if err != nil || !ok {
		return id, err
	}
	return parseTopicID(b)
}
