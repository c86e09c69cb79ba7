package zookeeper

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// TestTree runs the tests of package broker/meta/zk that need a ZooKeeper: the contract that both metadata trees keep.
func TestTree(t *testing.T) {
	args := []string{"test", "-count=1", "-v", "./broker/meta/zk"}
	if harness.Race() {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Dir(harness.CompatDir(t))
	cmd.Env = append(os.Environ(), "GREGOR_TEST_ZOOKEEPER="+peer.ZooKeeper(t))
	out, err := cmd.CombinedOutput()
	passed := strings.Count(string(out), "--- PASS: TestContract/")
	if err != nil || passed < 12 || strings.Contains(string(out), "SKIP") {
		t.Fatalf("%v, %d parts of the contract passed:\n%s", err, passed, out)
	}
	t.Logf("%d parts of the contract passed", passed)
}

// authority makes certificates for one test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.key = a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// write appends to a PEM file.
func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := pem.Encode(f, &pem.Block{Type: kind, Bytes: der}); err != nil {
		a.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		a.t.Fatal(err)
	}
}

// issue makes a file with a key and its certificate for 127.0.0.1.
func (a *authority) issue(name string) string {
	a.t.Helper()
	key := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	file := filepath.Join(a.t.TempDir(), name+".pem")
	a.write(file, "PRIVATE KEY", private)
	a.write(file, "CERTIFICATE", der)
	return file
}

// TestSecured: TLS to ZooKeeper with and without a certificate of our own, digest authentication, and nodes that only their maker can change.
func TestSecured(t *testing.T) {
	ca := newAuthority(t)
	secure := harness.FreeAddr(t)
	_, port, _ := strings.Cut(secure, ":")
	keeper := peer.StartZooKeeper(t, "secureClientPort="+port, "secureClientPortAddress=127.0.0.1", "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location="+ca.issue("zookeeper"), "ssl.keyStore.type=PEM", "ssl.trustStore.location="+ca.file, "ssl.trustStore.type=PEM", "ssl.clientAuth=want",
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider")
	tls := func(connect string, id int, more ...string) harness.Config {
		return harness.Config{Dir: t.TempDir(), Set: onZooKeeper(connect, id, append([]string{"zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.location=" + ca.file,
			"zookeeper.connection.timeout.ms=4000"}, more...)...)}
	}
	t.Run("certificate", func(t *testing.T) {
		b := harness.Start(t, tls(secure+"/certificate", 1, "zookeeper.ssl.keystore.location="+ca.issue("broker"), "zookeeper.set.acl=true"))
		b.Create(t, 2, nil, "kept")
		out := peer.ZooKeeperShell(t, keeper.Addr+"/certificate", "get /brokers/topics/kept\nset /brokers/topics/kept x\nget /config/users\nls /\n")
		says(t, out, `"topic_id"`)
		says(t, out, "Insufficient permission : /brokers/topics/kept")
		says(t, out, "Insufficient permission : /config/users")
	})
	t.Run("no user", func(t *testing.T) {
		harness.Start(t, tls(secure+"/open", 1)).Create(t, 1, nil, "kept")
	})
	t.Run("not trusted", func(t *testing.T) {
		other := newAuthority(t)
		refused(t, 30*time.Second, tls(secure, 1, "zookeeper.ssl.truststore.location="+other.file), "unknown authority", "zookeeper.ssl")
	})
	t.Run("another name", func(t *testing.T) {
		refused(t, 30*time.Second, tls("localhost:"+port, 1), "localhost", "zookeeper.ssl")
		harness.Start(t, tls("localhost:"+port+"/names", 1, "zookeeper.ssl.endpoint.identification.algorithm=")).Create(t, 1, nil, "kept")
	})
	t.Run("no key", func(t *testing.T) {
		refused(t, 30*time.Second, tls(secure, 1, "zookeeper.ssl.keystore.location="+ca.file), "zookeeper.ssl.keystore.location="+ca.file, "private key")
	})
	t.Run("digest", func(t *testing.T) {
		cfg := harness.Config{Dir: t.TempDir(), Set: onZooKeeper(keeper.Addr+"/digest", 1, "gregor.zookeeper.digest=gregor:secret", "zookeeper.set.acl=true")}
		b := harness.Start(t, cfg)
		b.Create(t, 2, nil, "kept")
		out := peer.ZooKeeperShell(t, keeper.Addr+"/digest", "set /brokers/topics/kept x\nget /config/users\naddauth digest gregor:secret\nset /config/users x\nls /\n")
		says(t, out, "Insufficient permission : /brokers/topics/kept")
		if n := strings.Count(out, "Insufficient permission : /config/users"); n != 1 {
			t.Errorf("refused %d times, wanted once, before the user is given:\n%s", n, out)
		}
		keeper.Kill(t)
		keeper.Up(t)
		b.Create(t, 1, nil, "after") // the user is known again
		says(t, peer.ZooKeeperShell(t, keeper.Addr+"/digest", "getAcl /brokers/topics/after\n"), "'digest,'gregor:")
	})
}

func says(t *testing.T, out, want string) {
	t.Helper()
	if !strings.Contains(out, want) {
		t.Errorf("does not say %q:\n%s", want, out)
	}
}
