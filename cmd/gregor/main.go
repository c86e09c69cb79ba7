package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// streams are what a command reads and writes besides files and sockets, so that tests can hand in their own.
type streams struct {
	out, err io.Writer
	environ  []string
	signals  <-chan os.Signal
}

func main() {
	signals, stop := notify()
	code := run(os.Args[1:], streams{out: os.Stdout, err: os.Stderr, environ: os.Environ(), signals: signals})
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit code: 0 for a clean end, 1 for an error, which was printed.
func run(args []string, s streams) int {
	root := &cobra.Command{
		Use:           "gregor",
		Short:         "A Kafka broker in one binary",
		Long:          "gregor is a broker that Kafka's clients speak to. `gregor serve` runs it.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(serveCommand(s), partitionsCommand(s), reloadCommand(s), importCommand(s), exportKRaftCommand(s), exportZooKeeperCommand(s), metaCommand(s), versionCommand(s.out))
	err := root.Execute()
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(s.err, "gregor: "+strings.TrimSuffix(line, "\n"))
	}
	return 1
}

func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%q is not a command", args[0])
	for _, near := range c.SuggestionsFor(args[0]) {
		text += "; did you mean " + near + "?"
	}
	return errors.New(text + " (gregor help lists them)")
}

func versionCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(out, "gregor "+versionLine())
			return err
		},
	}
}
