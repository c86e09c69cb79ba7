package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Listener is one address that is listened on, or advertised.
type Listener struct {
	Name string // PLAINTEXT
	Host string // "" is every address, when listening
	Port int32  // 0 chooses a free one, when listening
}

func (l Listener) String() string {
	return l.Name + "://" + net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port)))
}

// parseListener reads NAME://HOST:PORT. An IPv6 host stands in brackets. The name is returned in upper case.
func parseListener(text string) (Listener, error) {
	name, address, ok := strings.Cut(text, "://")
	if !ok || name == "" {
		return Listener{}, fmt.Errorf("%q is not of the form NAME://HOST:PORT", text)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Listener{}, fmt.Errorf("%q is not of the form NAME://HOST:PORT (an IPv6 address needs brackets: NAME://[::1]:9092)", text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Listener{}, fmt.Errorf("port %q of %q is not a number from 0 to 65535", port, text)
	}
	if strings.ContainsAny(host, " /,") {
		return Listener{}, fmt.Errorf("host %q of %q is not a host name or address", host, text)
	}
	return Listener{Name: strings.ToUpper(name), Host: host, Port: int32(n)}, nil
}

// listenerSet checks a list of listeners. Names that are in skip are left out.
func listenerSet(items []string, protocols map[string]string, skip []string) ([]Listener, error) {
	var set []Listener
	for _, item := range items {
		l, err := parseListener(item)
		if err != nil {
			return nil, err
		}
		if oneOf(skip).has(l.Name) {
			continue
		}
		switch p, known := protocols[l.Name]; {
		case !known:
			return nil, fmt.Errorf("listener %s has no security protocol; add %s:PLAINTEXT to listener.security.protocol.map", l.Name, l.Name)
		case p != "PLAINTEXT":
			return nil, fmt.Errorf("listener %s is %s, which is not built yet; only PLAINTEXT is", l.Name, p)
		}
		for _, other := range set {
			if other.Name == l.Name {
				return nil, fmt.Errorf("listener %s is named twice; each needs a name of its own", l.Name)
			}
			if other.Port == l.Port && l.Port != 0 && other.Host == l.Host {
				return nil, fmt.Errorf("listeners %s and %s have the same address", other, l)
			}
		}
		set = append(set, l)
	}
	return set, nil
}

// protocolMap reads NAME:PROTOCOL pairs.
func protocolMap(text string) (map[string]string, error) {
	protocols := map[string]string{}
	for _, pair := range splitList(strings.TrimSpace(text)) {
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not of the form NAME:PROTOCOL", pair)
		}
		switch protocol {
		case "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL":
			protocols[name] = protocol
		default:
			return nil, fmt.Errorf("%q is not a security protocol; allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", protocol)
		}
	}
	return protocols, nil
}

// ListenerLimits are the settings that a listener may have of its own; 0 is none.
type ListenerLimits struct {
	MaxConnections int32 // listener.name.NAME.max.connections
	ConnectionRate int32 // listener.name.NAME.max.connection.creation.rate, connections a second
}

// isListenerLimit says that a key is one of ListenerLimits, and of which listener.
func isListenerLimit(name string) (listener, key string, ok bool) {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return "", "", false
	}
	listener, key, _ = strings.Cut(rest, ".")
	return strings.ToUpper(listener), key, listener != "" && (key == "max.connections" || key == "max.connection.creation.rate")
}

// listenerLimits reads them, the strongest layer first.
func (b *builder) listenerLimits() {
	all := map[string]ListenerLimits{}
	for _, l := range slices.Backward(b.server.layers) {
		for name, text := range l.Values {
			listener, key, ok := isListenerLimit(name)
			if !ok {
				continue
			}
			v, _, problem := brokerCatalog().byName[key].parse(text)
			n, _ := v.(int64)
			if problem != "" {
				b.fail(name, problem)
				continue
			}
			limits := all[listener]
			if key == "max.connections" {
				limits.MaxConnections = int32(n)
			} else {
				limits.ConnectionRate = int32(n)
			}
			all[listener] = limits
		}
	}
	b.server.OfListener = all
}

// ConnectionOverride is the number of connections that may be open from a host: an address, or a name.
type ConnectionOverride struct {
	Host  string
	Limit int32
}

// parseOverrides reads HOST:NUMBER,HOST:NUMBER. Less than 0 is 0.
func parseOverrides(text string) ([]ConnectionOverride, error) {
	var all []ConnectionOverride
	for _, item := range splitList(strings.TrimSpace(text)) {
		i := strings.LastIndexByte(item, ':')
		if i <= 0 {
			return nil, fmt.Errorf("%q is not of the form HOST:NUMBER", item)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(item[i+1:]), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of connections", item[i+1:])
		}
		all = append(all, ConnectionOverride{strings.Trim(strings.TrimSpace(item[:i]), "[]"), int32(max(0, n))})
	}
	return all, nil
}

// overrides is the rule for them.
type overrides struct{}

func (overrides) problem(v any) (string, string) {
	if _, err := parseOverrides(format(v)); err != nil {
		return "", err.Error()
	}
	return "", ""
}

func (overrides) allowed() string { return "HOST:NUMBER,HOST:NUMBER" }

// hostPort is the rule for an address to listen on without a name.
type hostPort struct{}

func (hostPort) problem(v any) (string, string) {
	if text := format(v); text != "" {
		if _, err := parseListener("X://" + text); err != nil {
			return "", "Value is not of the form HOST:PORT with a port from 0 to 65535"
		}
	}
	return "", ""
}

func (hostPort) allowed() string { return "HOST:PORT, or nothing" }
