package peers

import (
	"fmt"

	"gregor/broker/meta"
)

// Endpoint chooses where to reach a broker: the listener of that name (inter.broker.listener.name), or, for "", the one called PLAINTEXT, or else the
// first with that protocol.
func Endpoint(listener string, of []meta.Endpoint) (meta.Endpoint, error) {
	found := -1
	for i, e := range of {
		switch {
		case listener != "" && e.Listener == listener && e.Protocol != "PLAINTEXT":
			return e, fmt.Errorf("%w: listener %s of the broker has protocol %s; only PLAINTEXT is spoken between brokers (inter.broker.listener.name)",
				ErrNoListener, listener, e.Protocol)
		case listener != "" && e.Listener != listener, e.Protocol != "PLAINTEXT":
		case found < 0 || e.Listener == "PLAINTEXT":
			found = i
		}
	}
	switch {
	case found >= 0:
		return of[found], nil
	case listener != "":
		return meta.Endpoint{}, fmt.Errorf("%w: the broker has no listener %s (inter.broker.listener.name), it has %v", ErrNoListener, listener, of)
	}
	return meta.Endpoint{}, fmt.Errorf("%w: the broker has %v; add a PLAINTEXT listener to it", ErrNoListener, of)
}

// protocolID is the number of a security protocol in UpdateMetadata (Kafka's SecurityProtocol).
func protocolID(name string) int16 {
	switch name {
	case "SSL":
		return 1
	case "SASL_PLAINTEXT":
		return 2
	case "SASL_SSL":
		return 3
	}
	return 0
}
