//go:build race

package batch

// raceEnabled says that memory is not what it is otherwise.
const raceEnabled = true
