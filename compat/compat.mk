# Proof from outside, see compat/README.md. The root Makefile includes this file.
.PHONY: compat compat-deps compat-long record

# What the tests need: kcat, kafka-python, Kafka's jars. Does nothing when all is there.
compat-deps:
	cd compat && go run ./cmd/compat-deps

# Real clients, kill -9, Kafka's tools on the files, hostile peers, bad disks. GREGOR_RACE=1 for a race-enabled broker.
compat: compat-deps
	cd compat && go vet ./... && go test -count=1 -timeout 15m ./...

# Asks Apache Kafka 2.8.2, 3.9.1 and 4.4.0 again what the broker's tests compare with (broker/testdata); see what changed with git diff.
record:
	cd compat && go test -count=1 -timeout 15m -v ./record -recording

# What takes minutes for one test.
compat-long: compat-deps
	cd compat && GREGOR_COMPAT_LONG=1 go test -count=1 -timeout 15m -v -run 'TestStreamsSmoke|TestCopiers' ./txn
