package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gregor/broker"
	"gregor/broker/adopt"
)

// errBlocked ends import when something stands in the way; what it is was printed.
var errBlocked = errors.New("not imported, nothing was changed: see \"in the way\" above")

// importOptions are the flags of import.
type importOptions struct {
	from    []string
	configs string
	what    broker.Import
}

func importCommand(s streams) *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use:   "import --from DIR",
		Short: "Take over the data directory of a stopped Apache Kafka",
		Long: "Checks the data directory (log.dirs) of a stopped Apache Kafka, prints what is in it, what is carried and what is not, and prepares it for\n" +
			"`gregor serve --data-dir DIR`. Nothing is changed when something stands in the way. Kafka can have the directory back: see\n" +
			"`gregor export-kraft` and `gregor export-zookeeper`.\n\n" +
			"Kafka in KRaft mode keeps the topics' configurations in the directory; with ZooKeeper they are there, so give them in a file:\n" +
			"what `kafka-topics.sh --bootstrap-server HOST:PORT --describe` printed while Kafka ran, or lines \"topic key=value\".",
		Example: "  gregor import --from /var/lib/kafka --dry-run\n  gregor import --from /disk1/kafka,/disk2/kafka --configs topics.txt",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return runImport(c.Context(), &o, s.out) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.from, "from", nil, "Kafka's log.dirs, all of one broker, separated by commas; metadata.log.dir last, if that is another")
	f.StringVar(&o.configs, "configs", "", "file with the topics' configurations")
	f.BoolVar(&o.what.DryRun, "dry-run", false, "only look")
	f.BoolVar(&o.what.Quick, "quick", false, "do not read every segment")
	f.BoolVar(&o.what.AllowMissing, "allow-missing", false, "begin partitions that are not in the directories empty")
	f.Int32Var(&o.what.NodeID, "node-id", -1, "the broker's id, when the directories have none")
	return c
}

func runImport(ctx context.Context, o *importOptions, out io.Writer) error {
	if len(o.from) == 0 {
		return errors.New("name the directories of the stopped Kafka: --from DIR")
	}
	o.what.Dirs = o.from
	if o.configs != "" {
		f, err := os.Open(o.configs)
		if err != nil {
			return err
		}
		defer f.Close()
		o.what.Configs = f
	}
	plan, err := broker.ImportKafka(ctx, o.what)
	if plan != nil {
		if err := plan.Print(out); err != nil {
			return err
		}
	}
	var blocked *adopt.BlockedError
	switch {
	case errors.As(err, &blocked):
		return errBlocked
	case err != nil:
		return err
	case o.what.DryRun:
		_, err = fmt.Fprintln(out, "nothing is in the way; nothing was changed (--dry-run)")
	default:
		_, err = fmt.Fprintf(out, "done; now run: gregor serve --data-dir %s\n", strings.Join(o.from, ","))
	}
	return err
}
