// Package config knows Kafka's configuration keys: names, types, units, defaults, limits and documentation of what is built, and the topic keys
// with the broker key that gives each its default. It reads server.properties, says what is unknown or unsupported, and describes values for
// DescribeConfigs. It does no I/O but reading the one file it is told to.
//
//go:generate go test -run ^TestTable$ -update .
package config
