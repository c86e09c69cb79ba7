package controller

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxNameLength is Kafka's limit for topic names, in characters: the name and "-<partition>" must fit into a file name.
const maxNameLength = 249

// clusterMetadata is KRaft's own topic. Nobody may create it.
const clusterMetadata = "__cluster_metadata"

// IsInternal reports if a topic is Kafka's own.
func IsInternal(name string) bool {
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}

// CheckName says what is wrong with a topic name: nil or an *Error.
func CheckName(name string) error {
	if reason := invalidName(name); reason != "" {
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: %s", reason)
	}
	return nil
}

func invalidName(name string) string {
	switch {
	case name == "":
		return "the empty string is not allowed"
	case name == "." || name == "..":
		return "'" + name + "' is not allowed"
	case len(name) > maxNameLength:
		return "the length of '" + name + "' is longer than the max allowed length 249"
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
		}
	}
	return ""
}

// unified is the form that two names must not share: metrics have '_' for '.'.
func unified(name string) string { return strings.ReplaceAll(name, ".", "_") }
