package meta

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Endpoint is one listener of a broker as it is told to others.
type Endpoint struct {
	Listener string // its name
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host     string
	Port     int32
}

func (e Endpoint) String() string {
	return e.Listener + "://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// BrokerNode is /brokers/ids/<id>, version 5 (KIP-584). It is ephemeral.
type BrokerNode struct {
	Endpoints []Endpoint
	Rack      string // "" for none
	Timestamp int64  // of the start, in milliseconds since 1970
}

type brokerJSON struct {
	Features  struct{}          `json:"features"`
	Protocols map[string]string `json:"listener_security_protocol_map"`
	Endpoints []string          `json:"endpoints"`
	Rack      string            `json:"rack,omitempty"`
	JMXPort   int               `json:"jmx_port"`
	Port      int32             `json:"port"`
	Host      *string           `json:"host"`
	Version   int               `json:"version"`
	Timestamp text              `json:"timestamp"`
}

// Encode writes the node as Kafka 3.9 does. Host and port of the first PLAINTEXT endpoint are repeated for old readers.
func (n BrokerNode) Encode() []byte {
	j := brokerJSON{Protocols: map[string]string{}, Endpoints: []string{}, Rack: n.Rack, JMXPort: -1, Port: -1, Version: 5, Timestamp: text(n.Timestamp)}
	for _, e := range n.Endpoints {
		j.Protocols[e.Listener] = e.Protocol
		j.Endpoints = append(j.Endpoints, e.String())
		if j.Host == nil && e.Protocol == "PLAINTEXT" {
			j.Host, j.Port = &e.Host, e.Port
		}
	}
	return encode(j)
}

// DecodeBroker reads a BrokerNode of version 1 to 5. Version 1 (Kafka 0.8) has only host and port.
func DecodeBroker(b []byte) (BrokerNode, error) {
	var j brokerJSON
	if err := decode("broker", b, &j); err != nil {
		return BrokerNode{}, err
	}
	n := BrokerNode{Rack: j.Rack, Timestamp: int64(j.Timestamp)}
	for _, s := range j.Endpoints {
		e, err := parseEndpoint(s)
		if err != nil {
			return BrokerNode{}, err
		}
		if e.Protocol = j.Protocols[e.Listener]; e.Protocol == "" {
			e.Protocol = e.Listener // before version 4 a listener was named by its protocol
		}
		n.Endpoints = append(n.Endpoints, e)
	}
	if len(j.Endpoints) == 0 && j.Host != nil {
		n.Endpoints = []Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: *j.Host, Port: j.Port}}
	}
	return n, nil
}

func parseEndpoint(s string) (Endpoint, error) {
	name, address, ok := strings.Cut(s, "://")
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if !ok || name == "" || err != nil || portErr != nil {
		return Endpoint{}, fmt.Errorf("%w: broker: endpoint %.100q is not NAME://HOST:PORT", ErrBadNode, s)
	}
	return Endpoint{Listener: name, Host: host, Port: int32(n)}, nil
}
