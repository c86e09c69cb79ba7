package groups

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"
)

// client is one kind of member.
type client struct {
	name    string
	command func(ctx context.Context, id identity) *exec.Cmd
	// cooperative is the assignor's name for cooperative rebalances; "" when it has none.
	cooperative string
	static      bool // it can be a static member
	endsAlone   bool // it ends when it loses its broker, and is started again
}

func (c client) member(ctx context.Context, id identity) *exec.Cmd {
	if id.instance == "" {
		id.instance = "-"
	}
	if id.assignor == "" {
		id.assignor = "-"
	}
	return c.command(ctx, id)
}

func (id identity) args() []string {
	return []string{id.broker, id.group, id.topic, id.instance, id.assignor}
}

// goClient is a client inside this test binary.
func goClient(name string) client {
	return client{name: name, command: func(ctx context.Context, id identity) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], id.args()...)
		cmd.Env = append(os.Environ(), memberVariable+"="+name)
		return cmd
	}}
}

func goClients() []client {
	franz, saramaClient := goClient("franz-go"), goClient("sarama")
	franz.cooperative, franz.static, saramaClient.static = "-", true, true // franz-go's own choice is cooperative-sticky
	return []client{franz, saramaClient, goClient("kafka-go")}
}

func javaClient(t *testing.T, version string) client {
	t.Helper()
	classPath, err := jars.Clients(version).Compile(t.Context(), filepath.Join(harness.CompatDir(t), "java", "GroupMember.java"))
	if err != nil {
		t.Fatal(err)
	}
	c := client{name: "java " + version, command: func(ctx context.Context, id identity) *exec.Cmd {
		return jars.Java(ctx, classPath, "GroupMember", id.args()...)
	}}
	if version >= "2.4" {
		c.static, c.cooperative = true, "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
	}
	return c
}

// scriptClients are those of Python and Node.js.
func scriptClients(t *testing.T) []client {
	t.Helper()
	ctx, dir := t.Context(), filepath.Join(harness.CompatDir(t), "groups", "testdata")
	python, err := deps.Python(ctx)
	if err != nil {
		t.Fatal(err)
	}
	confluent, err := deps.Confluent(ctx)
	if err != nil {
		t.Fatal(err)
	}
	node, modules, err := deps.Node(ctx)
	if err != nil {
		t.Fatal(err)
	}
	script := func(program, file string, env ...string) func(context.Context, identity) *exec.Cmd {
		return func(ctx context.Context, id identity) *exec.Cmd {
			cmd := exec.CommandContext(ctx, program, append([]string{filepath.Join(dir, file)}, id.args()...)...)
			cmd.Env = append(os.Environ(), env...)
			return cmd
		}
	}
	return []client{
		{name: "kafka-python", command: script(python, "member_python.py"), static: true},
		{name: "confluent-kafka", command: script(confluent, "member_confluent.py"), static: true, cooperative: "cooperative-sticky"},
		{name: "kafkajs", command: script(node, "member_kafkajs.js", "NODE_PATH="+modules)},
	}
}

// kcatClient is kcat -G. It commits by itself and says nothing of assignments.
func kcatClient(t *testing.T) client {
	t.Helper()
	path, err := deps.Kcat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client{name: "kcat", endsAlone: true, command: func(ctx context.Context, id identity) *exec.Cmd {
		return exec.CommandContext(ctx, path, "-q", "-u", "-b", id.broker, "-f", `record %p %o %s\n`,
			"-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", "-X", "auto.commit.interval.ms=100", "-X", "fetch.wait.max.ms=200",
			"-X", "auto.offset.reset=earliest", "-G", id.group, id.topic)
	}}
}
