// Package work holds the workloads: what is asked of a broker, for how long, and which figures come out. Every workload
// is the same for every broker; each makes its own topic and deletes it. All load comes from this process; its
// goroutines have ended when a workload returns.
package work
