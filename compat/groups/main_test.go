package groups

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// memberVariable names the Go client whose member this process is: the test binary starts itself, so that members can be killed.
const memberVariable = "GREGOR_COMPAT_GROUP_MEMBER"

func TestMain(m *testing.M) {
	if client := os.Getenv(memberVariable); client != "" {
		if err := beMember(client, os.Args[1:]); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// identity is what a member is told on its command line; "-" is nothing.
type identity struct{ broker, group, topic, instance, assignor string }

// beMember is a member of a group until standard input ends. It prints what java/GroupMember.java does.
func beMember(client string, args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("arguments %q", args)
	}
	id := identity{args[0], args[1], args[2], args[3], args[4]}
	stop := make(chan struct{})
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			if _, err := in.ReadByte(); err != nil {
				close(stop)
				return
			}
		}
	}()
	run, ok := map[string]func(identity, <-chan struct{}) error{"franz-go": franzMember, "sarama": saramaMember, "kafka-go": kafkaGoMember}[client]
	if !ok {
		return fmt.Errorf("no client %q", client)
	}
	return run(id, stop)
}

var saying sync.Mutex // standard output

// say prints one line.
func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

func numbers(partitions []int32) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(partitions)), ","), "[]")
}
