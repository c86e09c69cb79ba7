// Package quota decides how long clients that use more than their share have to wait: Kafka's client quotas (KIP-13, KIP-55, KIP-124, KIP-546, KIP-599).
//
// Promise. A Manager is pure: usage and the time come in, delays go out. What no quota is set for costs one atomic load. What a quota is set for is
// metered per share: all connections of the entity that the quota was found for together. Nothing is remembered of a share that was quiet for a whole
// window.
//
// Locks: Manager.mu is a leaf, held for a few map operations. Goroutines: none.
package quota
