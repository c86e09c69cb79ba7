package jars

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gregor/compat/harness"
)

// Set is a group of jars that is fetched and put on the class path together.
type Set struct {
	Name     string   // folder name in the cache
	artifact []string // group:name:version, or group:name:version:classifier
}

// Clients is kafka-clients of one version with its codecs and a silent logger: what a Java application has.
func Clients(version string) Set {
	return Set{"kafka-clients-" + version, []string{"org.apache.kafka:kafka-clients:" + version, "org.slf4j:slf4j-nop:1.7.36"}}
}

// Tools is the broker's jar of one version, from 0.8.2.2 on, with all it needs: the command line tools, the clients and,
// before 1.0, the Scala clients.
func Tools(version string) Set {
	artifacts := []string{"org.apache.kafka:kafka_" + scala(version) + ":" + version}
	if hasPrefix(version, "2.8.", "3.", "4.") {
		artifacts = append(artifacts, "org.apache.kafka:kafka-tools:"+version)
	}
	return Set{"kafka-tools-" + version, artifacts}
}

// StreamsTest is Kafka Streams with its smoke test, which 4.3.1 was the last to publish.
func StreamsTest() Set {
	return Set{"kafka-streams-test-4.3.1", []string{"org.apache.kafka:kafka-streams:4.3.1", "org.apache.kafka:kafka-streams:4.3.1:test",
		"org.apache.kafka:kafka-clients:4.3.1:test", "org.slf4j:slf4j-nop:1.7.36"}}
}

// SystemTests is what Kafka's own system tests run of one version before 2.8: VerifiableProducer and VerifiableConsumer.
func SystemTests(version string) Set {
	return Set{"kafka-system-tests-" + version, []string{"org.apache.kafka:kafka-tools:" + version}}
}

// scala is the Scala version in the name of a Kafka version's broker jar.
func scala(version string) string {
	switch {
	case hasPrefix(version, "0."):
		return "2.11"
	case hasPrefix(version, "1.", "2.0.", "2.1.", "2.2.", "2.3.", "2.4."):
		return "2.12"
	default:
		return "2.13"
	}
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// Versions are the Kafka versions whose clients and tools the tests run, oldest first. All run on Java 17.
func Versions() []string {
	return []string{"0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.8.2", "3.9.1", "4.4.0"}
}

// All lists every set the tests use.
func All() []Set {
	var sets []Set
	for _, version := range slices.Compact(slices.Sorted(slices.Values(append(GroupVersions(), TxnVersions()...)))) {
		sets = append(sets, Clients(version))
	}
	for _, version := range Versions() {
		sets = append(sets, Tools(version))
	}
	for _, version := range []string{"0.10.2.2", "1.1.1"} {
		sets = append(sets, SystemTests(version))
	}
	return sets
}

// GroupVersions are the versions of kafka-clients whose consumers join groups in the tests, oldest first.
func GroupVersions() []string {
	return []string{"0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.4.0"}
}

// TxnVersions are the versions of kafka-clients whose transactional producers run in the tests, oldest first.
func TxnVersions() []string { return []string{"0.11.0.3", "2.8.2", "3.9.1", "4.4.0"} }

// Ensure fetches the set unless it is there and returns its folder.
func (s Set) Ensure(ctx context.Context) (string, error) {
	var dir string
	err := harness.Once(s.Name, func(cache string) error {
		dir = filepath.Join(cache, "jars", s.Name)
		if _, err := os.Stat(filepath.Join(dir, ".done")); err == nil {
			return nil
		}
		if err := need("mvn", "java", "javac"); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), s.pom(), 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+dir, "-DincludeScope=runtime")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("fetch %s from Maven: %w\n%s", s.Name, err, out)
		}
		return os.WriteFile(filepath.Join(dir, ".done"), nil, 0o644)
	})
	return dir, err
}

func (s Set) pom() []byte {
	// What the log4j of the oldest versions asks for is not on Maven and not needed.
	unused := []string{"com.sun.jmx", "com.sun.jdmk", "javax.jms"}
	var b bytes.Buffer
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>gregor.compat</groupId><artifactId>jars</artifactId><version>1</version><dependencies>`)
	for _, a := range s.artifact {
		p := strings.Split(a, ":")
		fmt.Fprintf(&b, `<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>`, p[0], p[1], p[2])
		if len(p) > 3 {
			fmt.Fprintf(&b, `<classifier>%s</classifier>`, p[3])
		}
		b.WriteString(`<exclusions>`)
		for _, group := range unused {
			fmt.Fprintf(&b, `<exclusion><groupId>%s</groupId><artifactId>*</artifactId></exclusion>`, group)
		}
		b.WriteString(`</exclusions></dependency>`)
	}
	b.WriteString(`</dependencies></project>`)
	return b.Bytes()
}

// Compile compiles Java source files together against the set and returns the class path that runs them. The classes are
// kept in the cache under a name made of the sources' content.
func (s Set) Compile(ctx context.Context, sources ...string) (string, error) {
	dir, err := s.Ensure(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%d\n%s", len(text), text)
	}
	var classes string
	err = harness.Once("classes-"+s.Name, func(cache string) error {
		classes = filepath.Join(cache, "classes", s.Name+"-"+hex.EncodeToString(sum.Sum(nil)[:6]))
		if _, err := os.Stat(filepath.Join(classes, ".done")); err == nil {
			return nil
		}
		if err := os.MkdirAll(classes, 0o755); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "javac", append([]string{"-nowarn", "-d", classes, "-cp", dir + "/*"}, sources...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("javac %s against %s: %w\n%s", sources, s.Name, err, out)
		}
		return os.WriteFile(filepath.Join(classes, ".done"), nil, 0o644)
	})
	return classes + string(os.PathListSeparator) + dir + "/*", err
}

// Java prepares a run of a class; opts start the JVM small and quick, since the tests' processes are short.
func Java(ctx context.Context, classPath, class string, args ...string) *exec.Cmd {
	opts := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", classPath, class}
	return exec.CommandContext(ctx, "java", append(opts, args...)...)
}

func need(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not installed: on Debian `apt-get install default-jdk-headless maven`: %w", p, err)
		}
	}
	return nil
}
