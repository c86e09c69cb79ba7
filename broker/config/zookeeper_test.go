package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestZooKeeper(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]string
		want   ZooKeeper
	}{
		"none":     {nil, ZooKeeper{SessionTimeout: 18 * time.Second, ConnectionTimeout: 18 * time.Second}},
		"timeouts": {map[string]string{"connect": "a:1,b:2/k", "session.timeout.ms": "6000"}, ZooKeeper{Connect: "a:1,b:2/k", SessionTimeout: 6 * time.Second, ConnectionTimeout: 6 * time.Second}},
		"patience": {map[string]string{"connect": "a:1", "connection.timeout.ms": "500"}, ZooKeeper{Connect: "a:1", SessionTimeout: 18 * time.Second, ConnectionTimeout: 500 * time.Millisecond}},
		"acl": {map[string]string{"connect": "a:1", "set.acl": "true", "gregor.zookeeper.digest": "u:p:q"},
			ZooKeeper{Connect: "a:1", SessionTimeout: 18 * time.Second, ConnectionTimeout: 18 * time.Second, SetACL: true, Digest: "u:p:q"}},
		"tls": {map[string]string{"connect": "a:1", "ssl.client.enable": "true", "ssl.keystore.location": "/k.pem", "ssl.truststore.location": "/t", "ssl.truststore.type": "pem", "set.acl": "true"},
			ZooKeeper{Connect: "a:1", SessionTimeout: 18 * time.Second, ConnectionTimeout: 18 * time.Second, SetACL: true,
				TLS: &ZooKeeperTLS{Keystore: "/k.pem", Truststore: "/t", Protocols: []string{"TLSv1.2"}, CheckHost: true}}},
		"tls as it likes": {map[string]string{"connect": "a:1", "ssl.client.enable": "true", "ssl.protocol": "TLS", "ssl.endpoint.identification.algorithm": "", "ssl.cipher.suites": "A,B"},
			ZooKeeper{Connect: "a:1", SessionTimeout: 18 * time.Second, ConnectionTimeout: 18 * time.Second,
				TLS: &ZooKeeperTLS{Protocols: []string{"TLSv1.2", "TLSv1.3"}, CipherSuites: []string{"A", "B"}}}},
	} {
		tc.want.GenerateID, tc.want.ReservedIDs = true, 1000
		s, report, err := NewServer(Layer{Values: zookeeperValues(tc.values)})
		if err != nil || len(report.Notes) > 0 || !reflect.DeepEqual(s.ZooKeeper, tc.want) {
			t.Errorf("%s: %+v, %v, %v\nwant %+v", name, s.ZooKeeper, report.Notes, err, tc.want)
		}
	}
}

// TestReservedIDs: with ZooKeeper an id of the range that is generated cannot be given.
func TestReservedIDs(t *testing.T) {
	for _, tc := range []struct {
		values map[string]string
		fails  bool
	}{
		{map[string]string{"broker.id": "1001"}, false}, // the metadata is in the data directory
		{map[string]string{"broker.id": "1000", "zookeeper.connect": "a:1"}, false},
		{map[string]string{"broker.id": "1001", "zookeeper.connect": "a:1"}, true},
		{map[string]string{"broker.id": "11", "zookeeper.connect": "a:1", "reserved.broker.max.id": "10"}, true},
		{map[string]string{"broker.id": "1001", "zookeeper.connect": "a:1", "broker.id.generation.enable": "false"}, false},
	} {
		_, _, err := NewServer(Layer{Values: tc.values})
		if failed := err != nil && strings.Contains(err.Error(), "is above reserved.broker.max.id"); failed != tc.fails || err != nil && !failed {
			t.Errorf("%v: %v", tc.values, err)
		}
	}
}

func zookeeperValues(short map[string]string) map[string]string {
	values := map[string]string{}
	for name, v := range short {
		if !strings.HasPrefix(name, "gregor.") {
			name = "zookeeper." + name
		}
		values[name] = v
	}
	return values
}

// TestZooKeeperRefused: what cannot be done is said, with the key and what to do, and passwords are not.
func TestZooKeeperRefused(t *testing.T) {
	for _, tc := range []struct {
		values map[string]string
		want   string
	}{
		{map[string]string{"session.timeout.ms": "0"}, "zookeeper.session.timeout.ms=0: value must be at least 1"},
		{map[string]string{"set.acl": "true"}, "set gregor.zookeeper.digest"},
		{map[string]string{"gregor.zookeeper.digest": "secret"}, "gregor.zookeeper.digest=[hidden]: is not user:password"},
		{map[string]string{"ssl.client.enable": "true", "ssl.keystore.location": "/a.jks"}, "zookeeper.ssl.keystore.location=/a.jks: is not a .pem file"},
		{map[string]string{"ssl.client.enable": "true", "ssl.truststore.location": "/a", "ssl.truststore.type": "JKS"}, "zookeeper.ssl.truststore.type=JKS: cannot be read; make a PEM file"},
		{map[string]string{"ssl.client.enable": "true", "ssl.endpoint.identification.algorithm": "LDAPS"}, "is not known; allowed: HTTPS"},
		{map[string]string{"ssl.enabled.protocols": "SSLv3"}, "allowed: TLSv1.2, TLSv1.3"},
		{map[string]string{"ssl.ocsp.enable": "true"}, "revoked certificates are not looked for; allowed: false"},
	} {
		tc.values["connect"] = "a:1"
		_, _, err := NewServer(Layer{Values: zookeeperValues(tc.values)})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v\nwant %s", tc.values, err, tc.want)
		}
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	s, _, err := NewServer(Layer{Values: map[string]string{"zookeeper.connect": "a:1", "gregor.zookeeper.digest": "u:secret"}})
	if err != nil {
		t.Fatal(err)
	}
	entries := s.DescribeBroker([]string{"gregor.zookeeper.digest", "zookeeper.connect"})
	if len(entries) != 2 {
		t.Fatal(entries)
	}
	e := entries[0]
	if !e.Sensitive || !e.ReadOnly || e.Value != nil || e.Source != SourceStatic || len(e.Synonyms) != 1 || e.Synonyms[0].Value != nil {
		t.Errorf("%+v", e)
	}
	if e := entries[1]; e.Sensitive || !e.ReadOnly || e.Value == nil || *e.Value != "a:1" {
		t.Errorf("%+v", e)
	}
}
