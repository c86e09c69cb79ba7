package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ZooKeeper is how to reach the metadata when it is kept there, the keys zookeeper.*.
type ZooKeeper struct {
	// Connect is zookeeper.connect: host:port,host:port/chroot. Empty keeps the metadata in the data directory.
	Connect string
	// SessionTimeout is how long the broker's nodes outlive its last word.
	SessionTimeout time.Duration
	// ConnectionTimeout is how long a start waits for ZooKeeper.
	ConnectionTimeout time.Duration
	// SetACL makes nodes that only this user can change.
	SetACL bool
	// Digest is user:password, or empty.
	Digest string
	// GenerateID says that a broker without broker.id and without a data directory of its own gets the next id above ReservedIDs of the cluster.
	GenerateID  bool
	ReservedIDs int32
	// TLS is nil for a connection without.
	TLS *ZooKeeperTLS
}

// ZooKeeperTLS are the keys zookeeper.ssl.*. The files are PEM and not read yet.
type ZooKeeperTLS struct {
	// Keystore has the broker's private key and certificates; empty for none.
	Keystore string
	// Truststore has the certificates that are trusted; empty for the system's.
	Truststore string
	// Protocols are TLSv1.2, TLSv1.3 or both.
	Protocols []string
	// CipherSuites by their IANA names limit those of TLS 1.2; empty takes the library's.
	CipherSuites []string
	// CheckHost compares the server's certificate with the name in Connect.
	CheckHost bool
}

func zookeeperKeys() []key {
	return []key{
		{name: "zookeeper.connect", typ: String, null: true,
			doc: "ZooKeeper that has the metadata, as HOST:PORT,HOST:PORT/PATH; the path is made if it is missing. Without it the metadata is in the data directory."},
		{name: "zookeeper.session.timeout.ms", typ: Int, def: "18000", rule: atLeast(1),
			doc: "Milliseconds without a word from this broker after which ZooKeeper takes it for gone."},
		{name: "zookeeper.connection.timeout.ms", typ: Int, null: true, rule: atLeast(1),
			doc: "Milliseconds that a start waits for ZooKeeper; zookeeper.session.timeout.ms unless set."},
		{name: "broker.id.generation.enable", typ: Boolean, def: "true",
			doc: "With zookeeper.connect: a broker without broker.id gets the next free one above reserved.broker.max.id, and keeps it in its log directories."},
		{name: "reserved.broker.max.id", typ: Int, def: "1000", rule: atLeast(0), doc: "With zookeeper.connect: the largest broker.id that may be given, since those above are generated."},
		{name: "zookeeper.set.acl", typ: Boolean, def: "false",
			doc: "Make nodes that only this user can change, and only this user can read where passwords are. Needs gregor.zookeeper.digest or a keystore."},
		{name: "gregor.zookeeper.digest", typ: Password, null: true,
			doc: "user:password for ZooKeeper's digest authentication. SASL, which Kafka takes from a JAAS file, is not built."},
		{name: "zookeeper.ssl.client.enable", typ: Boolean, def: "false", doc: "Connect to ZooKeeper with TLS."},
		{name: "zookeeper.ssl.keystore.location", typ: String, null: true, doc: "PEM file with the private key, not encrypted, and the certificates that ZooKeeper is shown."},
		{name: "zookeeper.ssl.keystore.type", typ: String, null: true, doc: "Must be PEM: Java's formats cannot be read. Unless set it is known by the file name's end."},
		{name: "zookeeper.ssl.keystore.password", typ: Password, null: true, doc: "Not used: a PEM file's key must not be encrypted."},
		{name: "zookeeper.ssl.truststore.location", typ: String, null: true, doc: "PEM file with the certificates that ZooKeeper's must descend from; the system's unless set."},
		{name: "zookeeper.ssl.truststore.type", typ: String, null: true, doc: "Must be PEM, as zookeeper.ssl.keystore.type."},
		{name: "zookeeper.ssl.truststore.password", typ: Password, null: true, doc: "Not used: certificates in PEM files are not encrypted."},
		{name: "zookeeper.ssl.protocol", typ: String, def: "TLSv1.2", rule: oneOf{"TLSv1.2", "TLSv1.3", "TLS"}, doc: "TLS version, when zookeeper.ssl.enabled.protocols is not set; TLS is any."},
		{name: "zookeeper.ssl.enabled.protocols", typ: List, null: true, rule: oneOf{"TLSv1.2", "TLSv1.3"}, doc: "TLS versions that may be used."},
		{name: "zookeeper.ssl.cipher.suites", typ: List, null: true, doc: "Cipher suites of TLS 1.2 that may be used, by their IANA names; those of TLS 1.3 are fixed."},
		{name: "zookeeper.ssl.endpoint.identification.algorithm", typ: String, def: "HTTPS", doc: "HTTPS compares the host name with ZooKeeper's certificate, empty does not."},
		{name: "zookeeper.ssl.crl.enable", typ: Boolean, def: "false", rule: notBuilt{}, doc: "Ask for revoked certificates in lists: not built."},
		{name: "zookeeper.ssl.ocsp.enable", typ: Boolean, def: "false", rule: notBuilt{}, doc: "Ask for revoked certificates by OCSP: not built."},
	}
}

// notBuilt is a switch that must stay off: what it would protect from is not noticed.
type notBuilt struct{}

func (notBuilt) problem(v any) (string, string) {
	if on, ok := v.(bool); ok && on {
		return "", "Revoked certificates are not looked for"
	}
	return "", ""
}

func (notBuilt) allowed() string { return "false" }

// zookeeper fills and checks what belongs together.
func (b *builder) zookeeper() {
	s := b.server
	z := &s.ZooKeeper
	z.Connect = s.text("zookeeper.connect")
	z.SessionTimeout = s.duration("zookeeper.session.timeout.ms")
	if z.ConnectionTimeout = s.duration("zookeeper.connection.timeout.ms"); z.ConnectionTimeout == 0 {
		z.ConnectionTimeout = z.SessionTimeout
	}
	z.SetACL, z.Digest = s.boolean("zookeeper.set.acl"), s.text("gregor.zookeeper.digest")
	z.GenerateID, z.ReservedIDs = s.boolean("broker.id.generation.enable"), int32(s.integer("reserved.broker.max.id"))
	if z.Connect == "" {
		return
	}
	if z.GenerateID && s.NodeID > z.ReservedIDs {
		b.fail("broker.id", fmt.Sprintf("is above reserved.broker.max.id=%d, and ids above that are generated; raise it or set broker.id.generation.enable=false", z.ReservedIDs))
	}
	if s.boolean("zookeeper.ssl.client.enable") {
		z.TLS = b.zookeeperTLS()
	}
	if user, _, ok := strings.Cut(z.Digest, ":"); z.Digest != "" && (!ok || user == "") {
		b.fail("gregor.zookeeper.digest", "is not user:password")
	}
	if z.SetACL && z.Digest == "" && (z.TLS == nil || z.TLS.Keystore == "") {
		b.fail("zookeeper.set.acl", "needs a user, or nobody could change what is made; set gregor.zookeeper.digest=user:password, or zookeeper.ssl.keystore.location")
	}
}

func (b *builder) zookeeperTLS() *ZooKeeperTLS {
	s := b.server
	t := &ZooKeeperTLS{Keystore: b.pemFile("keystore"), Truststore: b.pemFile("truststore"), CipherSuites: s.list("zookeeper.ssl.cipher.suites"),
		Protocols: s.list("zookeeper.ssl.enabled.protocols")}
	if len(t.Protocols) == 0 {
		t.Protocols = []string{s.text("zookeeper.ssl.protocol")}
		if slices.Contains(t.Protocols, "TLS") {
			t.Protocols = []string{"TLSv1.2", "TLSv1.3"}
		}
	}
	switch algorithm := s.text("zookeeper.ssl.endpoint.identification.algorithm"); strings.ToUpper(algorithm) {
	case "HTTPS":
		t.CheckHost = true
	case "":
	default:
		b.fail("zookeeper.ssl.endpoint.identification.algorithm", "is not known; allowed: HTTPS, or empty for none")
	}
	return t
}

// pemFile is the location of one of the stores. Java's own formats are refused with what to do.
func (b *builder) pemFile(store string) string {
	prefix := "zookeeper.ssl." + store
	location, kind := b.server.text(prefix+".location"), strings.ToUpper(b.server.text(prefix+".type"))
	switch {
	case location == "" || kind == "PEM" || kind == "" && strings.HasSuffix(strings.ToLower(location), ".pem"):
		return location
	case kind == "":
		b.fail(prefix+".location", "is not a .pem file, and Java's formats cannot be read; make a PEM file of it with keytool -importkeystore -deststoretype PKCS12 and "+
			"openssl pkcs12 -nodes, or set "+prefix+".type=PEM if it is one")
	default:
		b.fail(prefix+".type", "cannot be read; make a PEM file of it with keytool -importkeystore -deststoretype PKCS12 and openssl pkcs12 -nodes, and set "+prefix+".type=PEM")
	}
	return location
}
