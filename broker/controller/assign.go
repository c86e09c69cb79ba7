package controller

// assign chooses replicas for partitions first to first+count-1 over brokers, as Kafka does without racks: leaders go round the brokers from
// start on, and the followers of a leader are shifted by one more each time around, so that a broker's partitions have their followers everywhere.
// REQUIRES: 0 < replication <= len(brokers).
func assign(brokers []int32, first, count int32, replication int, start int) [][]int32 {
	n := len(brokers)
	out := make([][]int32, count)
	slab := make([]int32, 0, int(count)*replication)
	for i := range out {
		p := int(first) + i
		leader := (p + start) % n
		shift := start + p/n
		from := len(slab)
		slab = append(slab, brokers[leader])
		for j := range replication - 1 {
			slab = append(slab, brokers[(leader+1+(shift+j)%(n-1))%n])
		}
		out[i] = slab[from:len(slab):len(slab)]
	}
	return out
}
