module gregor/compat/bench

go 1.26.0

replace gregor => ../..

require github.com/twmb/franz-go/pkg/kmsg v1.15.1
