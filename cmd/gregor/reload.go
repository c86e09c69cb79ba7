package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gregor/broker"
)

func reloadCommand(s streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a running broker read its settings again",
		Long: "Asks the broker that uses the data directory to read its file again, as SIGHUP does. Its log says which settings changed, which are in force at\n" +
			"once and which need a restart.",
		Example: "  gregor reload --data-dir /var/lib/gregor",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return reload(dir, s.out) },
	}
	c.Flags().StringVarP(&dir, "data-dir", "d", "./gregor-data", "data directory of the broker")
	return c
}

func reload(dir string, out io.Writer) error {
	pid, err := broker.ProcessOf(dir)
	if err != nil {
		return err
	}
	if err := hangUp(pid); err != nil {
		return fmt.Errorf("asking process %d, which uses %s: %w", pid, dir, err)
	}
	_, err = fmt.Fprintf(out, "asked process %d to read its settings again; its log says what changed\n", pid)
	return err
}
