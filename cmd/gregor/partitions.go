package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/broker/config"
)

// Keys of a topic that close partitions.
const (
	writeKey = "gregor.write.enabled"
	readKey  = "gregor.read.enabled"
)

// remote is how a command reaches a running broker.
type remote struct {
	servers []string
	timeout time.Duration
}

func (r *remote) flags(c *cobra.Command) {
	c.PersistentFlags().StringSliceVarP(&r.servers, "bootstrap-server", "b", []string{"127.0.0.1:9092"}, "address of a running broker")
	c.PersistentFlags().DurationVar(&r.timeout, "timeout", 10*time.Second, "how long to wait for it")
}

// admin calls f with a client.
func (r *remote) admin(ctx context.Context, f func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.servers...), kgo.ClientID("gregor-cli"))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers at %v (--bootstrap-server): %w", r.servers, err)
	}
	return f(ctx, kadm.NewClient(client))
}

func partitionsCommand(s streams) *cobra.Command {
	var r remote
	c := &cobra.Command{
		Use:   "partitions",
		Short: "Close partitions for producers or consumers, and open them again",
		Long: "A closed partition refuses its clients in a way that lets them try again: producers keep what they have and go on when it is opened.\n" +
			"Consumers can drain a partition that is closed for producers. It stays closed over restarts, until it is opened.",
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	r.flags(c)
	var reads bool
	closing := &cobra.Command{
		Use:     "close TOPIC [PARTITIONS]",
		Short:   "Close partitions for producers; with --read for consumers too",
		Example: "  gregor partitions close orders 0-3,7\n  gregor partitions close orders --read",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return r.admin(c.Context(), func(ctx context.Context, a *kadm.Client) error {
				keys := []string{writeKey}
				if reads {
					keys = append(keys, readKey)
				}
				return change(ctx, a, args, keys, config.PartitionSet.Without)
			})
		},
	}
	closing.Flags().BoolVar(&reads, "read", false, "consumers are refused too")
	opening := &cobra.Command{
		Use:   "open TOPIC [PARTITIONS]",
		Short: "Open partitions for everybody",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return r.admin(c.Context(), func(ctx context.Context, a *kadm.Client) error {
				return change(ctx, a, args, []string{writeKey, readKey}, config.PartitionSet.With)
			})
		},
	}
	listing := &cobra.Command{
		Use:   "list [TOPIC]",
		Short: "List which partitions are open",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return r.admin(c.Context(), func(ctx context.Context, a *kadm.Client) error { return listOpen(ctx, a, s.out, args) })
		},
	}
	c.AddCommand(closing, opening, listing)
	return c
}

// change sets the keys of the topic args[0] to what f makes of what they are and the partitions args[1], all if there are none.
func change(ctx context.Context, a *kadm.Client, args, keys []string, f func(now, named config.PartitionSet) config.PartitionSet) error {
	topic, named := args[0], config.AllPartitions()
	if len(args) > 1 {
		var err error
		if named, err = config.ParsePartitionSet(args[1]); err != nil {
			return err
		}
	}
	now, err := openPartitions(ctx, a, topic)
	if err != nil {
		return err
	}
	if err := someExist(ctx, a, topic, named); err != nil {
		return err
	}
	var alter []kadm.AlterConfig
	for _, key := range keys {
		value := f(now[topic][key], named).String()
		op := kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value}
		if value == "true" {
			op = kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key}
		}
		alter = append(alter, op)
	}
	results, err := a.AlterTopicConfigs(ctx, alter, topic)
	if err == nil {
		_, err = results.On(topic, nil)
	}
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return nil
}

// someExist says whether the topic has any of the partitions: one that names none of them is a slip.
func someExist(ctx context.Context, a *kadm.Client, topic string, named config.PartitionSet) error {
	details, err := a.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	partitions := details[topic].Partitions
	for n := range partitions {
		if named.Has(n) {
			return nil
		}
	}
	return fmt.Errorf("topic %s has partitions 0 to %d: %s are not there", topic, len(partitions)-1, named)
}

// openPartitions reads the keys of topics.
func openPartitions(ctx context.Context, a *kadm.Client, topics ...string) (map[string]map[string]config.PartitionSet, error) {
	described, err := a.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]config.PartitionSet, len(topics))
	for _, d := range described {
		if d.Err != nil {
			return nil, fmt.Errorf("topic %s: %w", d.Name, d.Err)
		}
		sets := map[string]config.PartitionSet{writeKey: config.AllPartitions(), readKey: config.AllPartitions()}
		for _, c := range d.Configs {
			if _, ours := sets[c.Key]; !ours || c.Value == nil {
				continue
			}
			if sets[c.Key], err = config.ParsePartitionSet(*c.Value); err != nil {
				return nil, fmt.Errorf("topic %s: %s: %w", d.Name, c.Key, err)
			}
		}
		all[d.Name] = sets
	}
	return all, nil
}

// listOpen prints one line for each topic.
func listOpen(ctx context.Context, a *kadm.Client, out io.Writer, args []string) error {
	details, err := a.ListTopics(ctx, args...)
	if err == nil {
		err = details.Error()
	}
	if err != nil {
		return err
	}
	names := details.Names()
	if len(names) == 0 {
		_, err := fmt.Fprintln(out, "no topics")
		return err
	}
	open, err := openPartitions(ctx, a, names...)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOPIC\tPARTITIONS\tWRITE\tREAD")
	for _, name := range names {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", name, len(details[name].Partitions), shown(open[name][writeKey]), shown(open[name][readKey]))
	}
	return w.Flush()
}

// shown is a set for people.
func shown(s config.PartitionSet) string {
	switch text := s.String(); text {
	case "true":
		return "all"
	case "false":
		return "none"
	default:
		return text
	}
}
