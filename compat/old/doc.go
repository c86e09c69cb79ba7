// Package old shows what clients and command line tools from 0.8 on meet beyond the matrix of package clients: offsets
// inside compressed sets, fetches smaller than a message, logs that begin late, topics that are empty, unknown or made on
// the way, a broker that is killed while they send; and the tools of each version as people run them.
package old
