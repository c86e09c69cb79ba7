# make run    build the broker and run it on 127.0.0.1:9092 with its data in ./gregor-data
# make test   everything that must pass; installs what the tests need
.PHONY: run build test unit check fuzz bench clean

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 10s

run: build
	./bin/gregor serve

build:
	go build -o bin/gregor ./cmd/gregor

test: check unit bench-test compat

# What needs no run: format, vet, another system's build, static analysis.
check:
	@unformatted=$$(gofmt -l . 2>/dev/null); if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/gregor
	go run $(STATICCHECK) ./...

unit:
	go test -race -timeout 10m ./...

# Every fuzz target for FUZZTIME.
fuzz:
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package; \
		done; \
	done

clean:
	rm -rf bin

include compat/compat.mk
-include compat/bench/bench.mk
