package target

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Versions of Kafka: the newest, and the last one that serves clients older than 2.1.
const (
	KafkaNewest = "4.4.0"
	KafkaOld    = "3.9.1"
)

// kafkaPOM names the jars of one version.
func kafkaPOM(version string) string {
	return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>gregor.bench</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + version + `</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.5</version></dependency>
</dependencies>
</project>
`
}

// FetchKafka brings the jars of a version of Apache Kafka from Maven into a folder below cache unless they are there, and returns it.
func FetchKafka(ctx context.Context, cache, version string) (string, error) {
	dir := filepath.Join(cache, "kafka-"+version)
	complete := filepath.Join(dir, "complete") // holds the pom that the folder was made from
	if was, err := os.ReadFile(complete); err == nil && string(was) == kafkaPOM(version) {
		return dir, nil
	}
	for _, program := range []string{"mvn", "java"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("Apache Kafka needs %s (Debian: apt-get install default-jre-headless maven), or leave it out with -target gregor: %w", program, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(kafkaPOM(version)), 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("Apache Kafka %s from Maven: %w\n%s", version, err, out)
	}
	return dir, os.WriteFile(complete, []byte(kafkaPOM(version)), 0o644)
}

// Kafka is a single KRaft node from the jars in lib, with the heap and collector of Kafka's own start script and
// Kafka's defaults, changed by the given key=value settings.
func Kafka(name, lib string, set []string) *Kind {
	return &Kind{
		Name: name,
		prepare: func(ctx context.Context, dir, addr string, pausable bool) error {
			all := set
			if pausable { // or its controller would take the pause for a dead broker
				all = append(slices.Clone(set), "broker.session.timeout.ms=86400000")
			}
			return formatKafka(ctx, lib, dir, addr, all)
		},
		keepKafka: func(dir, addr string, more []string) error {
			return writeProperties(dir, addr, append(slices.Clone(set), more...))
		},
		command: func(dir, _ string) *exec.Cmd {
			return exec.Command("java", "-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
				"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15",
				"-Djava.awt.headless=true", "-cp", filepath.Join(lib, "*"), "kafka.Kafka", properties(dir))
		},
	}
}

func properties(dir string) string { return filepath.Join(dir, "server.properties") }

// formatKafka writes the properties and lets Kafka's own tool format the directory.
func formatKafka(ctx context.Context, lib, dir, addr string, set []string) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	controller := net.JoinHostPort(host, strconv.Itoa(port+1))
	quorum := append([]string{
		"process.roles=broker,controller", "node.id=1",
		"controller.quorum.voters=1@" + controller,
		"listeners=PLAINTEXT://" + addr + ",CONTROLLER://" + controller,
		"controller.listener.names=CONTROLLER",
	}, set...)
	if err := writeProperties(dir, addr, quorum); err != nil {
		return err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f           // a text that begins with a dash would look like an option
	cmd := exec.CommandContext(ctx, "java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(lib, "*"), "kafka.tools.StorageTool",
		"format", "-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", properties(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format of %s: %w\n%s", dir, err, out)
	}
	return nil
}

// writeProperties writes what Kafka is started with; of a key that is there twice the last counts.
func writeProperties(dir, addr string, set []string) error {
	lines := append([]string{
		"listeners=PLAINTEXT://" + addr,
		"advertised.listeners=PLAINTEXT://" + addr,
		"log.dirs=" + filepath.Join(dir, "data"),
		"log.retention.check.interval.ms=1000", // or retention could not be timed
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
	}, set...)
	return os.WriteFile(properties(dir), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
