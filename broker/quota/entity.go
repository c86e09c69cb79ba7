package quota

import (
	"fmt"
	"math"
	"net/url"
	"strings"
)

// Kind is what a quota limits.
type Kind int8

// The kinds of quotas.
const (
	Produce    Kind = iota // producer_byte_rate: bytes a second
	Consume                // consumer_byte_rate: bytes a second
	Request                // request_percentage: processor time of one core, in percent
	Mutation               // controller_mutation_rate: partitions made or deleted a second
	Connection             // connection_creation_rate: connections a second
	kinds
)

// String is the key that Kafka has for the kind.
func (k Kind) String() string {
	return [...]string{"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate"}[k]
}

// KindOf is the kind of a key.
func KindOf(key string) (Kind, bool) {
	for k := range kinds {
		if k.String() == key {
			return k, true
		}
	}
	return 0, false
}

// whole says that values of the kind are integers.
func (k Kind) whole() bool { return k == Produce || k == Consume || k == Connection }

// Problem says what is wrong with a value for the kind, in Kafka's words, "" if nothing is.
func (k Kind) Problem(v float64) string {
	switch {
	case math.IsNaN(v):
		return fmt.Sprintf("%s is not a number", k)
	case v <= 0:
		return fmt.Sprintf("Quota %s must be greater than 0", k)
	case k == Connection && v > math.MaxInt32:
		return fmt.Sprintf("Proposed value for %s is too large for an INT.", k)
	case k.whole() && v >= math.MaxInt64, math.IsInf(v, 0):
		return fmt.Sprintf("Proposed value for %s is too large for a LONG.", k)
	case k.whole() && v != math.Trunc(v):
		return fmt.Sprintf("%s cannot be a fractional value.", k)
	}
	return ""
}

// Default as a name of an Entity means all who have no quota of their own.
const Default = "<default>"

// Entity is whom a quota is for: a user, a client id, both, or an address. An empty name is not part of it.
type Entity struct{ User, Client, IP string }

// Of which kinds an entity may have quotas.
func (e Entity) allows(k Kind) bool { return (k == Connection) == (e.IP != "") }

// CheckKind says what is wrong with a quota of kind k for e, nil if nothing is.
func (e Entity) CheckKind(k Kind) error {
	if !e.allows(k) {
		return fmt.Errorf("%s is no quota of %s", k, e)
	}
	return nil
}

func (e Entity) String() string {
	var parts []string
	for _, p := range [...][2]string{{"user ", e.User}, {"client id ", e.Client}, {"address ", e.IP}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

// Path is where the entity's quotas are in Kafka's ZooKeeper tree.
func (e Entity) Path() string {
	switch {
	case e.IP != "":
		return "/config/ips/" + Sanitize(e.IP)
	case e.User == "":
		return "/config/clients/" + Sanitize(e.Client)
	case e.Client == "":
		return "/config/users/" + Sanitize(e.User)
	}
	return "/config/users/" + Sanitize(e.User) + "/clients/" + Sanitize(e.Client)
}

// EntityAt is the entity whose settings are at a path of the tree.
func EntityAt(path string) (Entity, error) {
	parts := strings.Split(strings.TrimPrefix(path, "/config/"), "/")
	var names [2]string
	for i := range names {
		var err error
		if at := 2*i + 1; at < len(parts) {
			if names[i], err = Desanitize(parts[at]); err != nil {
				return Entity{}, fmt.Errorf("name %q: %w", parts[at], err)
			}
		}
	}
	switch parts[0] {
	case "users":
		return Entity{User: names[0], Client: names[1]}, nil
	case "clients":
		return Entity{Client: names[0]}, nil
	}
	return Entity{IP: names[0]}, nil
}

// Sanitize makes a name one that a node of the tree can have, as Kafka does: percent encoding but for letters, digits and "-_.".
func Sanitize(name string) string {
	if name == Default {
		return name
	}
	escaped := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return strings.ReplaceAll(escaped, "~", "%7E")
}

// Desanitize undoes Sanitize.
func Desanitize(node string) (string, error) {
	if node == Default {
		return node, nil
	}
	return url.PathUnescape(node)
}
