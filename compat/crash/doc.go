// Package crash ends the broker under load, by SIGKILL and by SIGTERM, starts it again on the same directory, and
// checks afterwards what was promised: nothing acked is lost, offsets are dense, an idempotent producer's records are
// there once and in order, and what a consumer saw never vanished or changed.
package crash
