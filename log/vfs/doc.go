// Package vfs is the file-system seam below the store: what the log calls, and nothing more, so that crashes, short
// writes, full disks and failing disks are tests.
//
// Implementations: OS (this package), crashfs (memory, can lose what was not synced) and faultfs (wraps another and
// fails chosen calls). The interfaces say what is durable after which call.
package vfs
