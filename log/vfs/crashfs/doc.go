// Package crashfs is a file system in memory that knows what was synced and can show the disk after a power cut.
//
// Promise. CrashClone gives a new file system with what a cut now could have left. Bytes covered by File.Sync or SyncAll are
// there. Bytes written since survive wholly, not at all, or partly: a prefix, whole 4 KiB pages in any choice, zeros where
// the size reached the disk and the data did not. Directory changes covered by SyncDir or SyncAll are there; later ones
// survive each by itself by chance, except that a change on a name, file or directory whose earlier change was lost is
// lost too, and that a rename is one change: old or new, never none. Syncing a file does not make its name durable.
//
// It is harder than a journalling file system, which orders the changes of a directory. What it does not do: lose synced
// bytes, tear a synced page, or reorder two writes to one page.
//
// Locks. FS.mu guards everything and is a leaf. Pages marked shared are immutable and are shared between file systems.
// Goroutines: none.
package crashfs
