package config

import "strings"

// IsFixed says that a broker key counts from the start on and cannot be set at run time.
func IsFixed(name string) bool {
	k := brokerCatalog().byName[name]
	return k != nil && !k.dynamic
}

// CheckValue checks the value of a broker key by itself. The error is a *ValueError in Kafka's words; keys that are not known have none.
func CheckValue(name, value string) error {
	k := brokerCatalog().byName[name]
	if _, key, ok := isListenerLimit(name); ok {
		k = brokerCatalog().byName[key]
	}
	if k == nil {
		return nil
	}
	if _, shown, problem := k.parse(value); problem != "" {
		return &ValueError{Key: name, Value: shown, Problem: problem}
	}
	return nil
}

// IsPerBroker says that a key can be set at run time for one broker only, not for all.
func IsPerBroker(name string) bool {
	switch name {
	case "listeners", "advertised.listeners", "listener.security.protocol.map", "principal.builder.class":
		return true
	}
	k := brokerCatalog().byName[name]
	return strings.HasPrefix(name, "listener.name.") || k != nil && k.dynamic && (strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl."))
}

// IsOfListener says that a key can be set at run time for one listener only.
func IsOfListener(name string) bool {
	k := brokerCatalog().byName[name]
	return k != nil && k.dynamic && (strings.HasPrefix(name, "ssl.keystore.") || strings.HasPrefix(name, "ssl.truststore.") || name == "ssl.key.password")
}

// IsSecret says that a key, or the one of a listener, is a password.
func IsSecret(name string) bool {
	for _, n := range []string{name, ofListener(name)} {
		if k := brokerCatalog().byName[n]; k != nil && k.typ == Password {
			return true
		}
	}
	return false
}

// WithoutEffect says why a broker key has no effect, "" if it has one.
func WithoutEffect(name string) string {
	if k := brokerCatalog().byName[name]; k != nil {
		return k.idle
	}
	if _, _, ok := isListenerLimit(name); ok {
		return ""
	}
	if text, ok := acceptedPrefix(name); ok {
		return text
	}
	text := "is not a key of Kafka or gregor"
	if near := Nearest(name); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// ofListener is the key that listener.name.NAME.KEY is of, "" if name is no such one. Keys of mechanisms keep their prefix.
func ofListener(name string) string {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return ""
	}
	_, key, _ := strings.Cut(rest, ".")
	if brokerCatalog().byName[key] == nil { // MECHANISM.sasl.jaas.config
		_, key, _ = strings.Cut(key, ".")
	}
	return key
}
