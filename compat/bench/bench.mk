# gregor beside Apache Kafka on this machine, see compat/bench/README.md. The root Makefile includes this file.
# BENCH holds flags, for example: make bench BENCH="-quick -target gregor -run produce"
.PHONY: bench bench-test
BENCH ?=

bench:
	cd compat/bench && go build -o ../../bin/bench . && ../../bin/bench $(BENCH)

# The benchmark's own parts: batches, answers, quantiles, table.
bench-test:
	cd compat/bench && go vet ./... && go test -race ./...
