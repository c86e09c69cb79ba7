package broker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"

	"gregor/broker/config"
)

// zookeeperTLS reads the files of zookeeper.ssl.*; nil for a connection without TLS.
func zookeeperTLS(c *config.ZooKeeperTLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}
	if slices.Contains(c.Protocols, "TLSv1.2") {
		conf.MinVersion = tls.VersionTLS12
	}
	if slices.Contains(c.Protocols, "TLSv1.3") {
		conf.MaxVersion = tls.VersionTLS13
	}
	if c.Keystore != "" {
		pair, err := tls.LoadX509KeyPair(c.Keystore, c.Keystore)
		if err != nil {
			return nil, fmt.Errorf("zookeeper.ssl.keystore.location=%s must have a private key, not encrypted, and its certificates, as PEM: %w", c.Keystore, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	if c.Truststore != "" {
		text, err := os.ReadFile(c.Truststore)
		if err != nil {
			return nil, fmt.Errorf("zookeeper.ssl.truststore.location: %w", err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("zookeeper.ssl.truststore.location=%s has no certificate as PEM", c.Truststore)
		}
	}
	var err error
	if conf.CipherSuites, err = cipherSuites(c.CipherSuites); err != nil {
		return nil, err
	}
	if !c.CheckHost {
		conf.InsecureSkipVerify, conf.VerifyConnection = true, chainOnly(conf.RootCAs)
	}
	return conf, nil
}

// cipherSuites are those with the given IANA names, nil for the library's choice.
func cipherSuites(names []string) (ids []uint16, err error) {
	for _, name := range names {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("zookeeper.ssl.cipher.suites: %s is not known, or not safe", name)
		}
		ids = append(ids, tls.CipherSuites()[i].ID)
	}
	return ids, nil
}

// chainOnly checks everything of a server's certificate but the name.
func chainOnly(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}
