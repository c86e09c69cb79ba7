//go:build race

package wire

// raceEnabled says that memory is not what it is otherwise.
const raceEnabled = true
