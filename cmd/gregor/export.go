package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gregor/broker"
)

// exportOptions are the flags of the export commands.
type exportOptions struct {
	dirs    []string
	release string
	file    string
}

func (o *exportOptions) export() (broker.Export, error) {
	if len(o.dirs) == 0 {
		return broker.Export{}, errors.New("name the data directory of the stopped broker: --data-dir DIR")
	}
	return broker.Export{Dirs: o.dirs, Release: o.release}, nil
}

func exportKRaftCommand(s streams) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export-kraft --data-dir DIR",
		Short: "Make a data directory ready for Apache Kafka in KRaft mode",
		Long: "Writes what an Apache Kafka in KRaft mode must find to know the topics of a stopped gregor: __cluster_metadata, meta.properties. Then start Kafka\n" +
			"with process.roles=broker,controller, the same node.id and log.dirs, and one voter. What Kafka had in its metadata before, such as ACLs, stays.",
		Example: "  gregor export-kraft --data-dir /var/lib/gregor",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return exportKRaft(c.Context(), &o, s.out) },
	}
	c.Flags().StringSliceVarP(&o.dirs, "data-dir", "d", nil, "data directory, or all of log.dirs separated by commas; Kafka's metadata.log.dir last, if that is another")
	c.Flags().StringVar(&o.release, "release", "", "release of Apache Kafka, where there is no metadata yet (default 4.4)")
	return c
}

func exportKRaft(ctx context.Context, o *exportOptions, out io.Writer) error {
	e, err := o.export()
	if err != nil {
		return err
	}
	left, err := broker.ExportKRaft(ctx, e)
	if err != nil {
		return err
	}
	for _, text := range left.Changed {
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "done: %d topics, %d partitions, %d records appended to Kafka's metadata; start Kafka with node.id=%d\n",
		left.Topics, left.Partitions, left.Records, left.NodeID)
	return err
}

func exportZooKeeperCommand(s streams) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export-zookeeper --data-dir DIR --to FILE",
		Short: "Make a data directory ready for Apache Kafka with ZooKeeper",
		Long: "Writes commands for Kafka's zookeeper-shell.sh that make the nodes an Apache Kafka with ZooKeeper must find to know the topics of a stopped\n" +
			"gregor. Run them before Kafka is started, into a new ZooKeeper or into the one that it had:\n\n" +
			"  zookeeper-shell.sh HOST:2181 < FILE\n\n" +
			"\"Node already exists\" is no error: the node is set by the next command.",
		Example: "  gregor export-zookeeper --data-dir /var/lib/gregor --to nodes.txt",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return exportZooKeeper(c.Context(), &o, s) },
	}
	c.Flags().StringSliceVarP(&o.dirs, "data-dir", "d", nil, "data directory, or all of log.dirs separated by commas")
	c.Flags().StringVar(&o.file, "to", "-", "file for the commands, - for the standard output")
	return c
}

func exportZooKeeper(ctx context.Context, o *exportOptions, s streams) (err error) {
	e, err := o.export()
	if err != nil {
		return err
	}
	script := s.out
	if o.file != "-" {
		f, err := os.Create(o.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		script = f
	}
	left, err := broker.ExportZooKeeper(ctx, e, script)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.err, "done: %d topics, %d partitions; run the commands with zookeeper-shell.sh, then start Kafka with broker.id=%d\n",
		left.Topics, left.Partitions, left.NodeID)
	return err
}
