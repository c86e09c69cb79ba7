package config

// Nearest returns the known key whose name is most like the given one, or "" when none is.
func Nearest(name string) string {
	best, bestCost := "", 2+len(name)/8
	consider := func(known string) {
		if cost := editDistance(name, known, bestCost+1); cost < bestCost || cost == bestCost && (best == "" || known < best) {
			best, bestCost = known, cost
		}
	}
	for _, known := range brokerCatalog().names {
		consider(known)
	}
	return best
}

// maxNameLength bounds the work of editDistance; no key of Kafka is as long.
const maxNameLength = 100

// editDistance counts the bytes to insert, delete or replace to make b of a, up to limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit || len(a) > maxNameLength {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return min(row[len(b)], limit)
}
