// Command compat-deps installs everything the compat tests need, so that a later run needs no network.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gregor/compat/deps"
	"gregor/compat/jars"
)

func main() {
	if err := install(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "compat-deps:", err)
		os.Exit(1)
	}
}

func install(ctx context.Context) error {
	kcat, err := deps.Kcat(ctx)
	if err != nil {
		return err
	}
	fmt.Println("kcat:", kcat)
	burrow, err := deps.Burrow(ctx)
	if err != nil {
		return err
	}
	fmt.Println("Burrow:", burrow)
	python, err := deps.Python(ctx)
	if err != nil {
		return err
	}
	fmt.Println("kafka-python:", python)
	confluent, err := deps.Confluent(ctx)
	if err != nil {
		return err
	}
	fmt.Println("confluent-kafka:", confluent)
	program, err := deps.ConfluentGo(ctx, filepath.Join("admin", "confluent"))
	if err != nil {
		return err
	}
	fmt.Println("confluent-kafka-go:", program)
	for name := range deps.Exporters() {
		path, err := deps.Exporter(ctx, name)
		if err != nil {
			path = "left out: " + err.Error() // its test says so too
		}
		fmt.Println(name+":", path)
	}
	_, modules, err := deps.Node(ctx)
	if err != nil {
		return err
	}
	fmt.Println("kafkajs:", modules)
	for _, set := range jars.All() {
		dir, err := set.Ensure(ctx)
		if err != nil {
			return err
		}
		fmt.Println(set.Name+":", dir)
	}
	return nil
}
