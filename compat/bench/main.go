package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"gregor/compat/bench/report"
	"gregor/compat/bench/target"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	targets []string
	pattern *regexp.Regexp
	rounds  int
	quick   bool
	dir     string
	cache   string
	repo    string
	binary  string
	out     string
	perf    string
	set     []string
	keeper  string // folder of the Kafka whose ZooKeeper is used
}

func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	targets := fs.String("target", strings.Join([]string{report.Gregor, report.KafkaSynced, report.KafkaDefault, report.KafkaOld}, ","), "brokers to measure, in this order in each round")
	pattern := fs.String("run", ".", "only workloads that match this regular expression; see README.md for their names")
	fs.IntVar(&o.rounds, "rounds", 0, "rounds of each workload (default 3, with -quick 1)")
	fs.BoolVar(&o.quick, "quick", false, "one round of half the length: a look, not a measurement")
	fs.StringVar(&o.dir, "dir", "", "folder on a disk for the brokers' data (default: in the cache folder)")
	fs.StringVar(&o.cache, "cache", "", "folder for Kafka's jars and the built broker (default: gregor-bench in the user's cache folder)")
	fs.StringVar(&o.repo, "repo", "../..", "the repository whose gregor is built")
	fs.StringVar(&o.binary, "gregor", "", "measure this binary; do not build")
	fs.StringVar(&o.out, "out", "", "also write the table as Markdown to this file")
	fs.StringVar(&o.perf, "perf", "", "write a `perf record -g` profile of the broker for each run into this folder")
	fs.Func("set", "key=value for gregor's --set; may be repeated", func(kv string) error {
		if !strings.Contains(kv, "=") {
			return errors.New("want key=value")
		}
		o.set = append(o.set, kv)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: workloads are named with -run", fs.Arg(0))
	}
	var err error
	if o.pattern, err = regexp.Compile(*pattern); err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	o.targets = strings.Split(*targets, ",")
	if o.rounds == 0 {
		o.rounds = 3
		if o.quick {
			o.rounds = 1
		}
	}
	return o, o.folders()
}

// folders fills in the defaults of the folders and makes them absolute, since brokers run elsewhere.
func (o *options) folders() error {
	if o.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no cache folder, name one with -cache: %w", err)
		}
		o.cache = filepath.Join(base, "gregor-bench")
	}
	if o.dir == "" {
		o.dir = filepath.Join(o.cache, "data")
	}
	for _, p := range []*string{&o.cache, &o.dir, &o.perf, &o.binary} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	if o.perf != "" {
		if err := os.MkdirAll(o.perf, 0o755); err != nil {
			return err
		}
	}
	return target.CheckDir(o.dir)
}

// kinds brings the brokers that were asked for.
func (o *options) kinds(ctx context.Context) ([]*target.Kind, error) {
	var kinds []*target.Kind
	if o.pattern.MatchString("zookeeper-start-2000") || o.pattern.MatchString("zookeeper-create-1000") {
		var err error
		if o.keeper, err = target.FetchKafka(ctx, o.cache, target.KafkaOld); err != nil {
			return nil, err
		}
	}
	for _, name := range o.targets {
		switch name {
		case report.Gregor:
			bin := o.binary
			if bin == "" {
				bin = filepath.Join(o.cache, "bin", "gregor")
				if err := target.Build(ctx, o.repo, bin); err != nil {
					return nil, err
				}
			}
			kinds = append(kinds, target.Gregor(name, bin, o.set))
		case report.KafkaDefault, report.KafkaSynced, report.KafkaOld:
			version := target.KafkaNewest
			if name == report.KafkaOld {
				version = target.KafkaOld
			}
			lib, err := target.FetchKafka(ctx, o.cache, version)
			if err != nil {
				return nil, err
			}
			set := []string{"log.segment.delete.delay.ms=100"} // or deleted topics would stay in the page cache for a minute
			if name == report.KafkaSynced {
				set = append(set, "log.flush.interval.messages=1")
			}
			kinds = append(kinds, target.Kafka(name, lib, set))
		default:
			return nil, fmt.Errorf("-target %s: want %s, %s, %s or %s", name, report.Gregor, report.KafkaSynced, report.KafkaDefault, report.KafkaOld)
		}
	}
	return kinds, nil
}
