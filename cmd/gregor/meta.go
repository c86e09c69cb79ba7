package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"gregor/broker"
	"gregor/broker/config"
	"gregor/broker/meta"
)

// metaOptions are the flags of the meta commands.
type metaOptions struct {
	options
	zookeeper string
	dryRun    bool
}

func metaCommand(s streams) *cobra.Command {
	var o metaOptions
	c := &cobra.Command{
		Use:   "meta",
		Short: "Read a stopped broker's metadata, or move it to ZooKeeper and back",
		Long: "Topics, settings, users and quotas are in the data directory, or in ZooKeeper when zookeeper.connect is set. These commands read them there, and\n" +
			"move them from the one to the other while no broker runs. Where they came from is marked as old: a broker does not start on it.",
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	o.persistentFlags(c)
	move := func(use, short, long, example string, do func(*broker.MetadataTools, context.Context, bool) (broker.Moved, error)) *cobra.Command {
		m := &cobra.Command{
			Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return o.move(c.Context(), s, do) },
		}
		m.Flags().BoolVar(&o.dryRun, "dry-run", false, "only look: say what would change")
		return m
	}
	c.AddCommand(
		&cobra.Command{
			Use: "ls PATH", Short: "List the children of a node", Args: cobra.ExactArgs(1),
			Example: "  gregor meta ls /brokers/topics\n  gregor meta ls / --zookeeper zk1:2181,zk2:2181/kafka",
			RunE:    func(c *cobra.Command, args []string) error { return o.list(c.Context(), s, args[0]) },
		},
		&cobra.Command{
			Use: "get PATH", Short: "Print what a node holds", Args: cobra.ExactArgs(1),
			Example: "  gregor meta get /config/topics/orders",
			RunE:    func(c *cobra.Command, args []string) error { return o.get(c.Context(), s, args[0]) },
		},
		move("export", "Move the metadata of the data directory to ZooKeeper",
			"Moves the metadata from the data directory to ZooKeeper, into a path that is empty or holds the same. Everything is compared before anything is\n"+
				"written, and a command that was cut short can be repeated. Then start the broker with zookeeper.connect.",
			"  gregor meta export --data-dir /var/lib/gregor --zookeeper zk1:2181/kafka --dry-run", (*broker.MetadataTools).Export),
		move("import", "Move the metadata of ZooKeeper to the data directory",
			"Moves the metadata from ZooKeeper to the data directory of the one broker that has all replicas. See export. Then start the broker without\n"+
				"zookeeper.connect.",
			"  gregor meta import --data-dir /var/lib/gregor --zookeeper zk1:2181/kafka --dry-run", (*broker.MetadataTools).Import))
	return c
}

func (o *metaOptions) persistentFlags(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVarP(&o.file, "config", "c", "", "the broker's server.properties")
	f.StringVarP(&o.dataDir, "data-dir", "d", "", "the broker's data directory, or all of log.dirs separated by commas (default ./gregor-data)")
	f.StringVarP(&o.zookeeper, "zookeeper", "z", "", "HOST:PORT,HOST:PORT/PATH, as zookeeper.connect")
	f.StringArrayVarP(&o.set, "set", "s", nil, "key=value, any key of server.properties; may be given more than once")
	f.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
}

// tools are those for the settings that the flags name.
func (o *metaOptions) tools(s streams) (*broker.MetadataTools, error) {
	level, err := o.level()
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: level}))
	layers, err := o.layers(s.environ, logger)
	if err != nil {
		return nil, err
	}
	if o.zookeeper != "" {
		layers = append([]config.Layer{{Origin: "--zookeeper", Values: map[string]string{"zookeeper.connect": o.zookeeper}}}, layers...)
	}
	return &broker.MetadataTools{Layers: layers, Logger: logger}, nil
}

func (o *metaOptions) view(ctx context.Context, s streams, path string, do func(meta.Tree) error) error {
	if !meta.ValidPath(path) {
		return fmt.Errorf("%q is not a path: it begins with / and does not end with one", path)
	}
	tools, err := o.tools(s)
	if err != nil {
		return err
	}
	return tools.View(ctx, do)
}

func (o *metaOptions) list(ctx context.Context, s streams, path string) error {
	return o.view(ctx, s, path, func(tree meta.Tree) error {
		names, err := tree.Children(ctx, path)
		for _, name := range names {
			if _, err := fmt.Fprintln(s.out, name); err != nil {
				return err
			}
		}
		return err
	})
}

func (o *metaOptions) get(ctx context.Context, s streams, path string) error {
	return o.view(ctx, s, path, func(tree meta.Tree) error {
		data, _, err := tree.Get(ctx, path)
		if err == nil {
			_, err = fmt.Fprintln(s.out, string(data))
		}
		return err
	})
}

func (o *metaOptions) move(ctx context.Context, s streams, do func(*broker.MetadataTools, context.Context, bool) (broker.Moved, error)) error {
	tools, err := o.tools(s)
	if err != nil {
		return err
	}
	m, err := do(tools, ctx, !o.dryRun)
	if err != nil {
		return err
	}
	outcome := "done; the metadata in " + m.From + " is old now"
	if o.dryRun {
		outcome = "nothing is in the way; nothing was changed (--dry-run)"
	}
	_, err = fmt.Fprintf(s.out, "from %s to %s: cluster %s, %d topics, %d nodes to be made, %d set, %d removed, %d there already\n%s\n",
		m.From, m.To, m.ClusterID, m.Topics, len(m.Create), len(m.Set), len(m.Delete), m.Same, outcome)
	return err
}
