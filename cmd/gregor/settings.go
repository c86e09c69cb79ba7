package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"gregor/broker/config"
)

// options are the flags of serve.
type options struct {
	file     string
	dataDir  string
	listen   []string
	set      []string
	logLevel string
}

func (o *options) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "Kafka's server.properties; unknown keys are reported, not fatal")
	f.StringVarP(&o.dataDir, "data-dir", "d", "", "directory for the data, as log.dirs (default ./gregor-data)")
	f.StringArrayVarP(&o.listen, "listen", "l", nil, "HOST:PORT to listen on, as listeners (default 127.0.0.1:9092); may be given more than once as NAME://HOST:PORT")
	f.StringArrayVarP(&o.set, "set", "s", nil, "key=value, any key of server.properties; may be given more than once")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
}

// layers are the settings, the strongest first: flags, environment, file.
func (o *options) layers(environ []string, logger *slog.Logger) ([]config.Layer, error) {
	set, err := config.Settings("--set", o.set)
	if err != nil {
		return nil, err
	}
	flags := config.Layer{Origin: "flags", Values: map[string]string{}}
	if o.dataDir != "" {
		flags.Values["log.dirs"] = o.dataDir
	}
	if len(o.listen) > 0 {
		flags.Values["listeners"] = strings.Join(listeners(o.listen), ",")
	}
	env, unknown := config.Environment(environ)
	if len(unknown) > 0 {
		logger.Warn("environment variables name no key and are ignored", "names", strings.Join(unknown, " "))
	}
	layers := []config.Layer{flags, set, env}
	if o.file == "" {
		return layers, nil
	}
	file, err := config.ReadFile(o.file)
	if err != nil {
		return nil, err
	}
	return append(layers, file), nil
}

// listeners gives addresses without a name the name PLAINTEXT.
func listeners(addresses []string) []string {
	named := make([]string, 0, len(addresses))
	for _, a := range addresses {
		if !strings.Contains(a, "://") {
			a = "PLAINTEXT://" + a
		}
		named = append(named, a)
	}
	return named
}

func (o *options) level() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(o.logLevel)); err != nil {
		return 0, fmt.Errorf("--log-level %q: must be debug, info, warn or error", o.logLevel)
	}
	return l, nil
}
