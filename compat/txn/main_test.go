package txn

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

// copierVariable names the Go client whose copier this process is: the test binary starts itself, so that copiers can be killed.
const copierVariable = "GREGOR_COMPAT_TXN_COPIER"

func TestMain(m *testing.M) {
	if client := os.Getenv(copierVariable); client != "" {
		if err := beCopier(client, os.Args[1:]); err != nil {
			fmt.Println("failed", err)
			os.Exit(4)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// job is what a copier is told on its command line.
type job struct{ broker, input, output, group, id string }

func (j job) args() []string { return []string{j.broker, j.input, j.output, j.group, j.id} }

// beCopier copies until standard input ends. It prints what java/TxnCopier.java does.
func beCopier(client string, args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("arguments %q", args)
	}
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
	run, ok := map[string]func(job, <-chan struct{}) error{"franz-go": franzCopier, "sarama": saramaCopier}[client]
	if !ok {
		return fmt.Errorf("no client %q", client)
	}
	return run(job{args[0], args[1], args[2], args[3], args[4]}, stop)
}
